package browser

import (
	"bufio"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"testing"
	"time"
)

// limit is how long one browser may run. Only a failing test takes this long.
const limit = 10 * time.Minute

// Browser is a running browser with a single page.
type Browser struct {
	tb      testing.TB
	to      io.Writer
	from    *bufio.Reader
	session string
	asked   int
	// Requests has the addresses that the page requested, its own address first.
	Requests []string
	// Complaints has the browser's messages about the page: errors, and requests that the page's
	// Content-Security-Policy blocked.
	Complaints []string
}

// Start starts a browser, which ends with the test.
func Start(tb testing.TB) *Browser {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	profile, err := os.MkdirTemp("", "ekco-browser-")
	if err != nil {
		tb.Fatal(err)
	}
	theirs, to, err := os.Pipe()
	if err != nil {
		tb.Fatal(err)
	}
	from, theirAnswers, err := os.Pipe()
	if err != nil {
		tb.Fatal(err)
	}
	chromium := exec.CommandContext(ctx, "chromium", "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
		"--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage",
		"--remote-debugging-pipe", "--window-size=1280,900", "--user-data-dir="+profile, "about:blank")
	chromium.ExtraFiles = []*os.File{theirs, theirAnswers} // file descriptors 3 and 4, which it reads and writes
	if err := chromium.Start(); err != nil {
		tb.Fatalf("start chromium: %v", err)
	}
	_, _ = theirs.Close(), theirAnswers.Close()
	b := &Browser{tb: tb, to: to, from: bufio.NewReader(from)}
	tb.Cleanup(func() {
		_, _ = fmt.Fprint(to, `{"id":0,"method":"Browser.close"}`+"\x00")
		_ = to.Close()
		_, _ = io.Copy(io.Discard, from) // it writes until it ends
		_ = chromium.Wait()
		cancel()
		_ = from.Close()
		if err := os.RemoveAll(profile); err != nil {
			tb.Errorf("remove the browser's files: %v", err)
		}
	})
	b.begin()
	return b
}

// begin opens an empty page for the following commands.
func (b *Browser) begin() {
	b.tb.Helper()
	var target struct{ TargetID string }
	b.ask("Target.createTarget", map[string]any{"url": "about:blank"}, &target)
	var attached struct{ SessionID string }
	b.ask("Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true}, &attached)
	b.session = attached.SessionID
	for _, domain := range []string{"Page", "Network", "Log", "Runtime"} {
		b.ask(domain+".enable", nil, nil)
	}
}

// Open opens a file and waits until it is loaded.
func (b *Browser) Open(file string) {
	b.tb.Helper()
	b.Requests, b.Complaints = nil, nil
	var opened struct{ ErrorText string }
	b.ask("Page.navigate", map[string]any{"url": "file://" + file}, &opened)
	if opened.ErrorText != "" {
		b.tb.Fatalf("open %s: %s", file, opened.ErrorText)
	}
	b.Look(`new Promise(done => document.readyState === "complete" ? done(0) : addEventListener("load", () => done(0)))`, nil)
}

// Width sets the width of the window in pixels.
func (b *Browser) Width(pixels int) {
	b.tb.Helper()
	b.ask("Emulation.setDeviceMetricsOverride", map[string]any{"width": pixels, "height": 900, "deviceScaleFactor": 1, "mobile": false}, nil)
}

// Look evaluates an expression in the page and stores its value.
func (b *Browser) Look(expression string, value any) {
	b.tb.Helper()
	var answer struct {
		Result           struct{ Value json.RawMessage }
		ExceptionDetails *struct{ Exception struct{ Description string } }
	}
	b.ask("Runtime.evaluate", map[string]any{"expression": expression, "awaitPromise": true, "returnByValue": true}, &answer)
	if answer.ExceptionDetails != nil {
		b.tb.Fatalf("evaluate %s: %s", expression, answer.ExceptionDetails.Exception.Description)
	}
	if value == nil {
		return
	}
	if err := json.Unmarshal(answer.Result.Value, value); err != nil {
		b.tb.Fatalf("value of %s: %v in %s", expression, err, answer.Result.Value)
	}
}

// Picture writes an image of the whole page to a file.
func (b *Browser) Picture(file string) {
	b.tb.Helper()
	var picture struct{ Data string }
	b.ask("Page.captureScreenshot", map[string]any{"format": "png", "captureBeyondViewport": true}, &picture)
	image, err := base64.StdEncoding.DecodeString(picture.Data)
	if err != nil {
		b.tb.Fatal(err)
	}
	if err := os.WriteFile(file, image, 0o600); err != nil {
		b.tb.Fatal(err)
	}
}

// message is a message from the browser: an answer or an event.
type message struct {
	ID     int
	Method string
	Params struct {
		Request struct{ URL string }
		Entry   struct{ Level, Text string }
		Type    string
	}
	Result json.RawMessage
	Error  *struct{ Message string }
}

// ask sends one request, and handles events until the answer arrives.
func (b *Browser) ask(method string, params map[string]any, result any) {
	b.tb.Helper()
	b.asked++
	question := map[string]any{"id": b.asked, "method": method}
	if params != nil {
		question["params"] = params
	}
	if b.session != "" {
		question["sessionId"] = b.session
	}
	line, err := json.Marshal(question)
	if err != nil {
		b.tb.Fatal(err)
	}
	if _, err := b.to.Write(append(line, 0)); err != nil {
		b.tb.Fatalf("ask the browser for %s: %v", method, err)
	}
	for {
		said := b.next(method)
		if said.ID == b.asked {
			b.answered(method, said, result)
			return
		}
		b.note(said)
	}
}

func (b *Browser) next(method string) (said message) {
	b.tb.Helper()
	line, err := b.from.ReadBytes(0)
	if err != nil {
		b.tb.Fatalf("wait for the browser's answer to %s: %v", method, err)
	}
	if err := json.Unmarshal(line[:len(line)-1], &said); err != nil {
		b.tb.Fatalf("the browser says %s: %v", line, err)
	}
	return said
}

func (b *Browser) answered(method string, said message, result any) {
	b.tb.Helper()
	if said.Error != nil {
		b.tb.Fatalf("the browser refuses %s: %s", method, said.Error.Message)
	}
	if result == nil {
		return
	}
	if err := json.Unmarshal(said.Result, result); err != nil {
		b.tb.Fatalf("the browser answers %s with %s: %v", method, said.Result, err)
	}
}

func (b *Browser) note(said message) {
	switch said.Method {
	case "Network.requestWillBeSent":
		b.Requests = append(b.Requests, said.Params.Request.URL)
	case "Log.entryAdded":
		b.Complaints = append(b.Complaints, said.Params.Entry.Level+": "+said.Params.Entry.Text)
	case "Runtime.consoleAPICalled", "Runtime.exceptionThrown":
		b.Complaints = append(b.Complaints, said.Method+" "+said.Params.Type)
	}
}
