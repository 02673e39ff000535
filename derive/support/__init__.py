"""Support for every part of the derivation: bounded files, places on disk, displays, interrupts, progress."""
