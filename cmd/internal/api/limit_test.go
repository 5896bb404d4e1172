package api

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

// promptly bounds what must not wait for anything. It is less than the time
// after which a server closes a connection by itself, and enough for a machine
// that is busy.
const promptly = 4 * time.Second

// visitor is one connection to the network port.
type visitor struct {
	t *testing.T
	net.Conn
	answers *bufio.Reader
}

// visit connects from a loopback address; it says nothing.
func visit(t *testing.T, from, address string) *visitor {
	t.Helper()
	dialer := net.Dialer{Timeout: promptly, LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	conn, err := dialer.Dial("tcp", strings.TrimPrefix(address, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return &visitor{t: t, Conn: conn, answers: bufio.NewReader(conn)}
}

func (v *visitor) say(text string) {
	v.t.Helper()
	if _, err := io.WriteString(v, text); err != nil {
		v.t.Fatal(err)
	}
}

// ask sends a request, and says the status of its answer.
func (v *visitor) ask(path string) (int, error) {
	if err := v.SetDeadline(time.Now().Add(promptly)); err != nil {
		return 0, err
	}
	if _, err := fmt.Fprintf(v, "GET %s HTTP/1.1\r\nHost: ekco\r\n\r\n", path); err != nil {
		return 0, err
	}
	response, err := http.ReadResponse(v.answers, nil)
	if err != nil {
		return 0, err
	}
	_, err = io.Copy(io.Discard, response.Body)
	return response.StatusCode, errors.Join(err, response.Body.Close())
}

// closed says whether the other side has ended the connection.
func (v *visitor) closed() bool {
	v.t.Helper()
	if err := v.SetReadDeadline(time.Now().Add(promptly)); err != nil {
		v.t.Fatal(err)
	}
	_, err := v.answers.ReadByte()
	var late net.Error
	return !errors.As(err, &late) || !late.Timeout()
}

// probe asks as kubelet does, on a connection of its own for each question.
func probe(t *testing.T, address, path string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), promptly)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address+path, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Do(request)
	if err != nil {
		t.Errorf("%s: %v", path, err)
		return
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		t.Errorf("%s: status %d", path, response.StatusCode)
	}
}

func TestConnectionsThatAreHeldOpenKeepNoProbeOut(t *testing.T) {
	for name, hold := range map[string]func(*visitor){
		"and say nothing":          func(*visitor) {},
		"and begin a request":      func(v *visitor) { v.say("G") },
		"and do not end a request": func(v *visitor) { v.say("GET /healthz HTTP/1.1\r\nX: ") },
		"and withhold a body":      func(v *visitor) { v.say("POST /healthz HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n") },
		"after an answer": func(v *visitor) {
			if status, err := v.ask("/healthz"); err != nil || status != http.StatusOK {
				v.t.Fatalf("an answer to one of many: %d, %v", status, err)
			}
		},
	} {
		for where, from := range map[string]func(i int) string{
			"one address":    func(int) string { return "127.0.0.1" },
			"many addresses": func(i int) string { return fmt.Sprintf("127.0.1.%d", 1+i%100) },
		} {
			t.Run(name+", of "+where, func(t *testing.T) {
				address := serveNetwork(t, fakeHealth{}, NewMetrics())
				for i := range 4 * maxConnections {
					hold(visit(t, from(i), address))
					if i%50 == 0 {
						probe(t, address, "/healthz")
					}
				}
				probe(t, address, "/healthz")
				probe(t, address, "/readyz")
			})
		}
	}
}

func TestManyConnectionsOfOneAddressPushOutNoOther(t *testing.T) {
	address := serveNetwork(t, fakeHealth{}, NewMetrics())
	scraper := visit(t, "127.0.0.2", address)
	if status, err := scraper.ask("/metrics"); err != nil || status != http.StatusOK {
		t.Fatalf("scraped %d, %v", status, err)
	}
	first := visit(t, "127.0.0.1", address)
	for range 4 * maxConnections {
		visit(t, "127.0.0.1", address)
	}
	if !first.closed() {
		t.Error("the oldest of the many is still open")
	}
	if status, err := scraper.ask("/metrics"); err != nil || status != http.StatusOK {
		t.Errorf("scraped again: %d, %v, although another address held the many", status, err)
	}
}

// slowHealth takes its time to say why.
type slowHealth struct{ asked, answer chan struct{} }

func (s slowHealth) Unready(context.Context) []string {
	close(s.asked)
	<-s.answer
	return nil
}

func TestARequestUnderWayIsNotCutOffForConnectionsThatWait(t *testing.T) {
	health := slowHealth{asked: make(chan struct{}), answer: make(chan struct{})}
	address := serveNetwork(t, health, NewMetrics())
	answer := sync.OnceFunc(func() { close(health.answer) })
	t.Cleanup(answer)
	asking := visit(t, "127.0.0.1", address)
	asking.say("GET /readyz HTTP/1.1\r\nHost: ekco\r\n\r\n")
	<-health.asked
	if err := asking.SetDeadline(time.Time{}); err != nil { // it waits for all that follows
		t.Fatal(err)
	}
	for range 4 * maxConnections {
		visit(t, "127.0.0.1", address)
	}
	probe(t, address, "/healthz")
	answer()
	if response, err := http.ReadResponse(asking.answers, nil); err != nil || response.StatusCode != http.StatusOK {
		t.Errorf("the request under way ended with %v", err)
	} else {
		_ = response.Body.Close()
	}
}
