package api

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/fsm"
	fsmnode "github.com/replicatedhq/ekco/fsm/node"
	"github.com/replicatedhq/ekco/internal/serving"
	"github.com/replicatedhq/ekco/internal/sim/memorynet"
	"github.com/replicatedhq/ekco/journal"
)

func TestEveryMethodGoesThroughTheSocket(t *testing.T) {
	ctx := context.Background()
	at := time.Date(2026, 11, 21, 1, 2, 3, 4, time.UTC)
	backend := &fakeBackend{
		status: Status{
			Now: at, Nodes: []NodeStatus{{Name: "w", State: fsmnode.Unknown, Since: at}},
			Pauses: map[string]fsm.PauseState{"": {Reason: "r", At: at}},
		},
		explained: Explanation{Kind: journal.ActionPurgeNode, Checks: []CheckResult{{Preflight: "P", Verdict: actions.VerdictWarn, Reason: "r"}}},
		things: []ThingExplanation{{
			Machine: "lamp", State: "Dark", Since: at, FactsSeq: 3, Refusals: []fsm.Refusal{{Rule: "R"}},
			Contests: []ContestStatus{{Key: "switch", Until: at}}, Last: map[journal.ActionKind]fsm.Ending{"light-lamp": {Action: "a"}},
		}},
		admitted: Admission{Action: "purge-w-1", Resumed: true, FromSeq: 7},
		imported: journal.JournalImported{Events: 3},
		verified: VerifyResult{OK: true, Events: 9},
		exported: "gzip",
	}
	client := dial(t, serve(t, backend))
	actor := LocalActor()

	status, err := client.Status(ctx)
	expect(t, "status", backend.status, status, err)

	request := fsm.Request{
		Kind: journal.ActionPurgeNode, Name: "w", Input: []byte(`{"min_ready_workers":1}`), Reason: "r", Force: true, DryRun: true,
		Warned: []journal.ActionWarned{{Preflight: "P", Warning: "w", Answer: "yes"}}, Actor: "cli:forged@elsewhere",
	}
	explained, err := client.Explain(ctx, request)
	expect(t, "explain", backend.explained, explained, err)
	about := ThingRequest{Kind: "lamp", Name: "hall"}
	things, err := client.ExplainThing(ctx, about)
	expect(t, "explain a thing", backend.things, things, err)
	expect(t, "thing as asked", about, backend.last(), nil)
	admitted, err := client.Request(ctx, request)
	expect(t, "request", backend.admitted, admitted, err)
	request.Actor = actor
	expect(t, "request as asked", request, backend.last(), nil)

	for _, test := range []struct {
		name string
		ask  func() error
		want any
	}{
		{"pause", func() error {
			return client.Do(ctx, PauseRequest{Name: "w", Reason: "r", For: time.Hour, Actor: "forged"})
		}, PauseRequest{Name: "w", Reason: "r", For: time.Hour, Actor: actor}},
		{"resume", func() error { return client.Do(ctx, ResumeRequest{Name: "w", Reason: "r", Actor: "forged"}) }, ResumeRequest{Name: "w", Reason: "r", Actor: actor}},
		{"retry", func() error { return client.Do(ctx, RetryRequest{Action: "a", Actor: "forged"}) }, RetryRequest{Action: "a", Actor: actor}},
		{"cancel", func() error { return client.Do(ctx, CancelRequest{Action: "b", Actor: "forged"}) }, CancelRequest{Action: "b", Actor: actor}},
		{"accept", func() error { return client.Do(ctx, AcceptRequest{Reason: "r", Actor: "forged"}) }, AcceptRequest{Reason: "r", Actor: actor}},
	} {
		expect(t, test.name, nil, nil, test.ask())
		expect(t, test.name+" as asked", test.want, backend.last(), nil)
	}

	var exported bytes.Buffer
	query := journal.Query{Node: "w", Types: []journal.Type{journal.TypeNodeGone}, Since: at, Limit: 3}
	err = client.Export(ctx, &exported, query)
	expect(t, "export", "gzip", exported.String(), err)
	expect(t, "export as asked", query, backend.last(), nil)

	imported, err := client.Import(ctx, "/tmp/a & b.gz", strings.NewReader("an export"))
	expect(t, "import", backend.imported, imported, err)
	expect(t, "import as asked", "an export from /tmp/a & b.gz", backend.last(), nil)

	verified, err := client.Verify(ctx)
	expect(t, "verify", backend.verified, verified, err)
}

func expect(t *testing.T, what string, want, got any, err error) {
	t.Helper()
	if err != nil {
		t.Errorf("%s: %v", what, err)
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("%s: %s", what, diff)
	}
}

func TestABrokenConnectionDoesNotNameADraftOfTheSocket(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.sock")
	listener, err := Listen(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			_ = conn.Close() // before it is read: a reset
		}
	})
	defer serving.Wait()
	defer func() { _ = listener.Close() }()
	for range 20 {
		_, err := Dial(t.Context(), path)
		if err == nil || strings.Contains(err.Error(), "."+strconv.Itoa(os.Getpid())+".sock") || !strings.Contains(err.Error(), path) {
			t.Fatalf("got %v, want an error that names %s", err, path)
		}
	}
}

// An operator that is killed ends its connections in the middle of an answer.
func TestAnOperatorThatEndsWhileItAnswersIsSaidToHaveEnded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.sock")
	listener, err := Listen(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	var serving sync.WaitGroup
	serving.Go(func() {
		for _, answer := range []string{"", "HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{"} {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			_, _ = http.ReadRequest(bufio.NewReader(conn))
			_, _ = io.WriteString(conn, answer)
			_ = conn.Close()
		}
	})
	defer serving.Wait()
	defer func() { _ = listener.Close() }()
	for _, want := range []error{io.EOF, io.ErrUnexpectedEOF} {
		if _, err := Dial(t.Context(), path); !errors.Is(err, want) || !strings.Contains(err.Error(), "EKCO ended while it answered; ask again") || strings.Contains(err.Error(), "Post") {
			t.Errorf("it says %v, want %v", err, want)
		}
	}
}

func TestAnErrorKeepsItsIdentityAndText(t *testing.T) {
	backend := &fakeBackend{}
	client := dial(t, serve(t, backend))
	for _, identity := range knownErrors {
		backend.err = fmt.Errorf("retry purge-w-1: %w", identity.err)
		for name, ask := range map[string]func() error{
			"retry":  func() error { return client.Do(context.Background(), RetryRequest{}) },
			"export": func() error { return client.Export(context.Background(), io.Discard, journal.Query{}) },
			"import": func() error { _, err := client.Import(context.Background(), "", strings.NewReader("")); return err },
			"events": func() error {
				for _, err := range client.Events(context.Background(), journal.Query{}, false) {
					return err
				}
				return nil
			},
		} {
			err := ask()
			if !errors.Is(err, identity.err) || !strings.Contains(err.Error(), backend.err.Error()) {
				t.Errorf("%s: got %v, want %v with its identity", name, err, backend.err)
			}
			if errors.Is(err, io.EOF) {
				t.Errorf("%s: %v has an identity it never had", name, err)
			}
		}
	}
}

func TestEventsAreReadInOrderAndFollowed(t *testing.T) {
	backend := &fakeBackend{events: history(5), more: make(chan journal.Event)}
	client := dial(t, serve(t, backend))
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var got []uint64
	for event, err := range client.Events(ctx, journal.Query{After: 1}, true) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, event.Seq)
		switch event.Seq {
		case 5:
			go func() {
				for _, event := range []journal.Event{{Seq: 6}, {Seq: 7}} {
					backend.more <- event
				}
			}()
		case 7:
			cancel()
		}
	}
	if diff := cmp.Diff([]uint64{2, 3, 4, 5, 6, 7}, got); diff != "" {
		t.Error(diff)
	}
}

func TestAReaderMayStopInTheMiddle(t *testing.T) {
	client := dial(t, serve(t, &fakeBackend{events: history(100_000)}))
	read := 0
	for _, err := range client.Events(context.Background(), journal.Query{}, false) {
		if err != nil {
			t.Fatal(err)
		}
		if read++; read == 3 {
			break
		}
	}
	if read != 3 {
		t.Errorf("read %d events, want 3", read)
	}
}

// cuttingBackend breaks off each stream after a few events.
type cuttingBackend struct {
	fakeBackend
	each int
}

func (c *cuttingBackend) cut(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != pathEvents {
			next.ServeHTTP(w, r)
			return
		}
		recorder := &lineCutter{ResponseWriter: w, left: c.each}
		next.ServeHTTP(recorder, r)
		if recorder.left <= 0 {
			panic(http.ErrAbortHandler)
		}
	})
}

type lineCutter struct {
	http.ResponseWriter
	left int
}

func (l *lineCutter) Write(content []byte) (int, error) {
	for line := range bytes.Lines(content) {
		if l.left--; l.left < 0 {
			return 0, errors.Join(io.ErrClosedPipe, http.NewResponseController(l.ResponseWriter).Flush())
		}
		if _, err := l.ResponseWriter.Write(line); err != nil {
			return 0, err
		}
	}
	return len(content), nil
}
func (l *lineCutter) Unwrap() http.ResponseWriter { return l.ResponseWriter }

func TestAStreamThatIsCutIsTakenUpAgain(t *testing.T) {
	backend := &cuttingBackend{fakeBackend: fakeBackend{events: history(10)}, each: 3}
	path := filepath.Join(t.TempDir(), "journal.sock")
	listener, err := Listen(context.Background(), path)
	if err != nil {
		t.Fatal(err)
	}
	s := &server{backend: backend, log: quiet(), host: "h", stopping: context.Background(), timeout: writeTimeout}
	httpServer := &http.Server{Handler: backend.cut(s.routes()), ConnContext: withPeer, ReadHeaderTimeout: time.Minute}
	done := make(chan error, 1)
	go func() { done <- httpServer.Serve(listener) }()
	defer func() {
		if err := httpServer.Close(); err != nil {
			t.Error(err)
		}
		if err := <-done; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	}()
	client := dial(t, path)
	for _, limit := range []int{0, 3, 7} {
		var got []uint64
		for event, err := range client.Events(context.Background(), journal.Query{Limit: limit}, false) {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, event.Seq)
		}
		want := []uint64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}
		if limit > 0 {
			want = want[:limit]
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("limit %d: %s", limit, diff)
		}
	}
}

func TestAFollowerIsToldWhenTheOperatorStops(t *testing.T) {
	backend := &fakeBackend{events: history(1), more: make(chan journal.Event)}
	path, stop := serveUntilStopped(t, backend)
	client := dial(t, path)
	var last error
	for _, err := range client.Events(context.Background(), journal.Query{}, true) {
		if err == nil {
			go stop()
		}
		last = err
	}
	if last == nil {
		t.Error("the sequence ended without an error, as if it were whole")
	}
}

func TestAStaleSocketIsReplaced(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.sock")
	stale, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	stale.(*net.UnixListener).SetUnlinkOnClose(false)
	if err := stale.Close(); err != nil {
		t.Fatal(err)
	}
	listener, err := Listen(context.Background(), path)
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode() != os.ModeSocket|0o600 {
		t.Errorf("socket has mode %v (%v), want 0600", info.Mode(), err)
	}
	if err := listener.Close(); err != nil {
		t.Error(err)
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(path), "*")); len(left) != 0 {
		t.Errorf("closing left %v", left)
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(path), ".*.sock")); len(left) != 0 {
		t.Errorf("closing left %v", left)
	}
}

func TestASocketInUseIsLeftAlone(t *testing.T) {
	backend := &fakeBackend{status: Status{Defects: []string{"first"}}}
	path := serve(t, backend)
	if _, err := Listen(context.Background(), path); !errors.Is(err, ErrSocketInUse) {
		t.Errorf("got %v, want ErrSocketInUse", err)
	}
	status, err := dial(t, path).Status(context.Background())
	expect(t, "status of the first", backend.status, status, err)
}

func TestAFileThatIsNoSocketIsLeftAlone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.sock")
	if err := os.WriteFile(path, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Listen(context.Background(), path); err == nil {
		t.Error("listening succeeded")
	}
	if content, err := os.ReadFile(path); err != nil || string(content) != "precious" {
		t.Errorf("the file now holds %q (%v)", content, err)
	}
}

func TestAPathTooLongForASocketIsNamed(t *testing.T) {
	_, err := Listen(context.Background(), "/tmp/"+strings.Repeat("x", 120))
	if err == nil || !strings.Contains(err.Error(), "107") {
		t.Errorf("got %v, want an error that names the limit", err)
	}
}

func TestWithoutAnOperatorDialSaysSo(t *testing.T) {
	_, err := Dial(context.Background(), filepath.Join(t.TempDir(), "journal.sock"))
	if !errors.Is(err, ErrNoOperator) {
		t.Errorf("got %v, want ErrNoOperator", err)
	}
}

func TestAnOperatorThatIsSilentIsToldFromNone(t *testing.T) {
	t.Parallel() // it waits for seconds
	path := filepath.Join(t.TempDir(), "journal.sock")
	listener, err := Listen(context.Background(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	if _, err := Dial(context.Background(), path); !errors.Is(err, ErrNoAnswer) {
		t.Errorf("got %v, want ErrNoAnswer", err)
	}
}

// lateListener takes its connections late, as on a host that is busy.
type lateListener struct{ net.Listener }

func (l lateListener) Accept() (net.Conn, error) {
	<-time.After(4 * time.Second)
	return l.Listener.Accept()
}

func TestASlowOperatorAnswers(t *testing.T) {
	t.Parallel() // it waits for seconds
	path := filepath.Join(t.TempDir(), "journal.sock")
	listener, err := Listen(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var serving sync.WaitGroup
	serving.Go(func() { _ = Serve(ctx, lateListener{listener}, &fakeBackend{}, quiet()) })
	defer serving.Wait()
	defer cancel()
	client, err := Dial(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	client.Close()
}

func TestAnotherUserIsKeptOut(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Log("not root: cannot become another user; the guard is tested by TestThePeerIsJudgedByItsUID")
		return
	}
	dir, err := os.MkdirTemp("/tmp", "ekco")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	binary := copySelf(t, dir)
	path := filepath.Join(dir, "journal.sock")
	ctx, cancel := context.WithCancel(context.Background())
	listener, err := Listen(ctx, path)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- Serve(ctx, listener, &fakeBackend{}, quiet()) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	for _, test := range []struct {
		why  string
		mode os.FileMode
	}{{"by the socket's mode", 0o600}, {"by its credentials", 0o666}} {
		if err := os.Chmod(path, test.mode); err != nil {
			t.Fatal(err)
		}
		command := exec.Command(binary)
		command.Env = []string{dialVariable + "=" + path}
		command.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		output, err := command.CombinedOutput()
		if err != nil || !strings.Contains(string(output), "forbidden=true") {
			t.Errorf("%s: got %q (%v), want forbidden", test.why, output, err)
		}
	}
}

// TestAClientRefusesTheSocketOfAnotherUser: anybody can create a socket in a shared directory.
func TestAClientRefusesTheSocketOfAnotherUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Log("not root: cannot become another user; the guard is tested by TestThePeerIsJudgedByItsUID")
		return
	}
	dir, err := os.MkdirTemp("/tmp", "ekco")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	path, listening := filepath.Join(dir, "journal.sock"), make(chan net.Listener)
	go func() {
		defer close(listening)
		runtime.LockOSThread() // and never unlock it, so that the thread of the other user ends here
		if _, _, failed := syscall.RawSyscall(syscall.SYS_SETRESUID, ^uintptr(0), 65534, ^uintptr(0)); failed != 0 {
			t.Error(failed)
			return
		}
		listener, err := (&net.ListenConfig{}).Listen(context.Background(), "unix", path)
		if err != nil {
			t.Error(err)
			return
		}
		listening <- listener
	}()
	listener, ok := <-listening
	if !ok {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- Serve(ctx, listener, &fakeBackend{}, quiet()) }()
	client, err := Dial(t.Context(), path)
	if !errors.Is(err, ErrForbidden) {
		t.Errorf("got %v, %v, want ErrForbidden", client, err)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// copySelf puts the test binary where another user may run it.
func copySelf(t *testing.T, dir string) string {
	t.Helper()
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	binary := filepath.Join(dir, "api.test")
	if err := os.WriteFile(binary, content, 0o755); err != nil {
		t.Fatal(err)
	}
	return binary
}

func TestThePeerIsJudgedByItsUID(t *testing.T) {
	own := uint32(os.Geteuid())
	for _, test := range []struct {
		peer peer
		want error
	}{
		{peer{uid: 0}, nil},
		{peer{uid: own}, nil},
		{peer{uid: own + 4711}, ErrForbidden},
		{peer{err: errors.New("no credentials")}, ErrForbidden},
	} {
		if err := test.peer.requireAllowed(); !errors.Is(err, test.want) {
			t.Errorf("%+v: got %v, want %v", test.peer, err, test.want)
		}
	}
}

func TestWhatSudoSaysIsOnlyADetail(t *testing.T) {
	got := peer{uid: 0}.actor("h", "al\x1b[31mice (root)")
	if want := "cli:root@h (sudo by al31miceroot)"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestABodyThatIsTooLargeIsRefused(t *testing.T) {
	client := dial(t, serve(t, &fakeBackend{}))
	err := client.Do(context.Background(), PauseRequest{Reason: strings.Repeat("x", maxRequest)})
	if !errors.Is(err, ErrInvalid) {
		t.Errorf("got %v, want ErrInvalid", err)
	}
}

// serveInBubble serves a backend in a synctest bubble, where sockets cannot be used.
func serveInBubble(t *testing.T, backend Backend) *Client {
	t.Helper()
	listener := memorynet.Listen()
	ctx, cancel := context.WithCancel(t.Context())
	s := &server{backend: backend, log: quiet(), host: "h", stopping: ctx, timeout: writeTimeout}
	itself := func(ctx context.Context, _ net.Conn) context.Context {
		return context.WithValue(ctx, peerKey{}, peer{uid: uint32(os.Getuid())})
	}
	done := make(chan error, 1)
	go func() {
		done <- serving.Until(ctx, &http.Server{Handler: s.routes(), ConnContext: itself, ReadHeaderTimeout: time.Minute}, listener)
	}()
	client := &Client{path: "memory", http: &http.Client{Transport: &http.Transport{DialContext: listener.Dial}}}
	t.Cleanup(func() {
		client.Close()
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return client
}

// watchedBackend says when a stream of events is over.
type watchedBackend struct {
	fakeBackend
	over chan struct{}
}

func (w *watchedBackend) Events(ctx context.Context, query journal.Query, follow bool) iter.Seq2[journal.Event, error] {
	return func(yield func(journal.Event, error) bool) {
		w.fakeBackend.Events(ctx, query, follow)(yield)
		select {
		case w.over <- struct{}{}:
		default:
		}
	}
}

func TestASlowReaderDoesNotHoldTheJournalAndMissesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 1000 // more than the client reads ahead
		backend := &watchedBackend{fakeBackend: fakeBackend{events: history(n)}, over: make(chan struct{})}
		client := serveInBubble(t, backend)
		read := uint64(0)
		for event, err := range client.Events(t.Context(), journal.Query{}, false) {
			if err != nil {
				t.Fatal(err)
			}
			if read++; event.Seq != read {
				t.Fatalf("event %d came as number %d", event.Seq, read)
			}
			if read == 1 {
				<-backend.over
			}
		}
		if read != n {
			t.Errorf("read %d events, want %d", read, n)
		}
		if len(backend.asked) != 2 {
			t.Errorf("it asked %d times, want once more after the stream was cut", len(backend.asked))
		}
	})
}

func TestAConnectionIsGoodAfterAPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := serveInBubble(t, &fakeBackend{events: history(3), exported: "x"})
		for range 3 {
			if _, err := client.Status(t.Context()); err != nil {
				t.Fatal(err)
			}
			time.Sleep(2 * writeTimeout) // the answer was written under a deadline
			n := 0
			for _, err := range client.Events(t.Context(), journal.Query{}, false) {
				if n++; err != nil {
					t.Fatal(err)
				}
			}
			if n != 3 {
				t.Errorf("read %d events, want 3", n)
			}
		}
	})
}
