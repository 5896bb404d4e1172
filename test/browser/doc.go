// Package browser opens a page in a real browser, Debian's Chromium without a window, and
// tells what became of it: what the page asked for, what the browser had to say about it,
// and what stands where. It is spoken to by its own pipe (--remote-debugging-pipe), so that
// nothing has to be installed beside it and no port is opened.
package browser
