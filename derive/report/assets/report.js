(function () {
  "use strict";
  var root = document.documentElement;
  root.classList.add("scripted");

  function each(selector, act) {
    Array.prototype.forEach.call(document.querySelectorAll(selector), act);
  }

  // Copy the LaTeX of an equation, also where a page from a file may not use the clipboard directly.
  function copied(button, done) {
    var before = "TeX";
    button.textContent = done ? "copied" : "failed";
    document.getElementById("said").textContent = done ? "LaTeX copied" : "copying failed";
    window.setTimeout(function () { button.textContent = before; }, 1200);
  }

  function copyByHand(text) {
    var area = document.createElement("textarea");
    area.value = text;
    area.setAttribute("readonly", "");
    area.style.position = "fixed";
    area.style.opacity = "0";
    document.body.appendChild(area);
    area.select();
    var done = false;
    try { done = document.execCommand("copy"); } catch (error) { done = false; }
    document.body.removeChild(area);
    return done;
  }

  document.addEventListener("click", function (event) {
    var button = event.target.closest("button.copy");
    if (!button) { return; }
    var text = button.closest(".equation").getAttribute("data-latex");
    if (navigator.clipboard && window.isSecureContext) {
      navigator.clipboard.writeText(text).then(
        function () { copied(button, true); },
        function () { copied(button, copyByHand(text)); }
      );
    } else {
      copied(button, copyByHand(text));
    }
  });

  // A link opens every fold around its target.
  function reveal() {
    var target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    for (var node = target; node; node = node.parentElement) {
      if (node.tagName === "DETAILS") { node.open = true; }
    }
    if (target) { target.scrollIntoView(); }
  }
  window.addEventListener("hashchange", reveal);
  reveal();

  function setAll(open) {
    each("main details", function (fold) { fold.open = open; });
  }
  document.getElementById("open-all").addEventListener("click", function () { setAll(true); });
  document.getElementById("close-all").addEventListener("click", function () { setAll(false); });

  // Paper has no folds: print everything but code, then put the folds back.
  var closed = [];
  window.addEventListener("beforeprint", function () {
    closed = [];
    each("main details:not([open])", function (fold) {
      if (!fold.closest("#code") || fold.id === "code") { closed.push(fold); fold.open = true; }
    });
  });
  window.addEventListener("afterprint", function () {
    closed.forEach(function (fold) { fold.open = false; });
  });

  // On a small screen the contents start closed.
  if (window.matchMedia("(max-width: 40rem)").matches) {
    document.querySelector("nav details").open = false;
  }
})();
