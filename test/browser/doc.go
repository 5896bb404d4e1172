// Package browser opens a page in a real browser, Debian's Chromium without a window. It reports what the page
// requested, the browser's messages, and the positions of elements. It controls the browser through a pipe
// (--remote-debugging-pipe), so that no driver has to be installed and no port is opened.
package browser
