package ceph

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/replicatedhq/ekco/internal/parallel"
)

// said is what a talker writes about one line, and whether it ends then.
type said struct {
	stdout, stderr string
	ends           bool
}

// talker is a place with a ceph program that reads questions. What a process of its
// own answers is in the script.
type talker struct {
	*script
	at string
	// reply answers a line of a conversation; nil says what ceph would.
	reply func(line string) said
	// deaf ones say nothing until their input ends; then what they have to say
	// comes too late.
	deaf bool
	// panics has a defect.
	panics bool

	mu     sync.Mutex
	lines  []string
	starts []time.Time
	ended  int
}

// takes is how long a talker needs for an answer.
const takes = 20 * time.Millisecond

func (k *talker) Place(context.Context) (string, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.at, nil
}

// What has happened so far.
func (k *talker) started() int    { k.mu.Lock(); defer k.mu.Unlock(); return len(k.starts) }
func (k *talker) over() int       { k.mu.Lock(); defer k.mu.Unlock(); return k.ended }
func (k *talker) heard() []string { k.mu.Lock(); defer k.mu.Unlock(); return slices.Clone(k.lines) }

func (k *talker) move(place string) { k.mu.Lock(); defer k.mu.Unlock(); k.at = place }
func (k *talker) hearAgain()        { k.mu.Lock(); defer k.mu.Unlock(); k.deaf = false }

func (k *talker) Interact(ctx context.Context, place string, argv []string, stdin io.Reader, stdout, stderr io.Writer) (int, error) {
	at, _ := k.Place(ctx)
	want := "env PYTHONUNBUFFERED=1 timeout -k 2 24 ceph --connect-timeout 8 -f json"
	if got := strings.Join(argv, " "); got != want || place != at {
		k.t.Errorf("ran %q in %q, want %q", got, place, want)
	}
	k.mu.Lock()
	k.starts = append(k.starts, time.Now())
	k.mu.Unlock()
	defer func() { k.mu.Lock(); k.ended++; k.mu.Unlock() }()
	if k.panics {
		panic("a defect")
	}
	lines := make(chan string)
	go func() {
		defer close(lines)
		for scanner := bufio.NewScanner(stdin); scanner.Scan(); {
			select {
			case lines <- scanner.Text():
			case <-ctx.Done():
				return
			}
		}
	}()
	for {
		select {
		case <-ctx.Done():
			return 0, ctx.Err()
		case line, more := <-lines:
			if !more {
				return 0, nil
			}
			time.Sleep(takes)
			said := k.readStdout(line)
			_, _ = io.WriteString(stdout, said.stdout)
			_, _ = io.WriteString(stderr, said.stderr)
			if said.ends {
				return 1, nil
			}
		}
	}
}

func (k *talker) readStdout(line string) said {
	k.mu.Lock()
	k.lines = append(k.lines, line)
	deaf := k.deaf
	k.mu.Unlock()
	switch {
	case deaf:
		return said{}
	case k.reply != nil:
		return k.reply(line)
	}
	return k.truth(line)
}

// truth is what ceph says in a conversation where a process of its own would give
// what is in the script.
func (k *talker) truth(line string) said {
	given, ok := k.answers[line]
	switch {
	case !ok:
		k.t.Errorf("unexpected line %q", line)
	case given.exitCode != 0:
		return said{stderr: given.stderr}
	}
	return said{stdout: given.stdout + "\n"}
}

func talking(t *testing.T, answers map[string]answer) (*Client, *talker) {
	k := &talker{script: &script{t: t, answers: answers}, at: "tools/ceph"}
	client := New(k, Options{})
	return client, k
}

// recordings of all questions.
func allRecorded(t *testing.T) map[string]answer {
	given := func(name string) answer { return answer{stdout: string(recorded(t, name))} }
	return map[string]answer{
		"version": given("version"), "status": given("status-ok"), "osd tree": given("osd-tree-ok"), "osd dump": given("osd-dump-pools"),
		"osd crush rule dump": given("crush-rule-dump"), "pg dump pgs_brief": given("pg-dump-ok"), "osd safe-to-destroy 1 2": given("safe-active"),
		"osd df": given("osd-df"), "df": given("df"),
	}
}

// askAll asks everything at once, and returns what each said.
func askAll(t *testing.T, client *Client) (said map[string]string) {
	t.Helper()
	var mu sync.Mutex
	said = make(map[string]string)
	note := func(what string, answer any, err error) {
		mu.Lock()
		defer mu.Unlock()
		said[what] = fmt.Sprintf("%+v, %v", answer, err)
	}
	ctx := t.Context()
	parallel.Run(
		func() { a, err := client.Version(ctx); note("version", a, err) },
		func() { a, err := client.Health(ctx); note("health", a, err) },
		func() { a, err := client.Tree(ctx); note("tree", a, err) },
		func() { a, err := client.Pools(ctx); note("pools", a, err) },
		func() { a, err := client.PGs(ctx); note("pgs", a, err) },
		func() { a, err := client.SafeToDestroy(ctx, 1, 2); note("safe", a, err) },
		func() { a, err := client.Room(ctx); note("room", a, err) },
	)
	return said
}

// truthOf is what processes of their own say.
func truthOf(t *testing.T, answers map[string]answer) map[string]string {
	t.Helper()
	return askAll(t, New(&script{t: t, answers: answers}, Options{}))
}

func wantSame(t *testing.T, got, want map[string]string) {
	t.Helper()
	for what, answer := range want {
		if got[what] != answer {
			t.Errorf("%s is %s, want %s", what, got[what], answer)
		}
	}
}

func TestAnInfiniteNumberSpoilsOnlyTheAnswersThatNeedIt(t *testing.T) {
	infinite := func(field string) map[string]answer {
		answers := allRecorded(t)
		dump := answers["osd dump"].stdout
		answers["osd dump"] = answer{stdout: strings.Replace(dump, field, field+"inf,\"was\":", 1)}
		return answers
	}
	synctest.Test(t, func(t *testing.T) {
		unused, used := infinite(`"last_change":`), infinite(`"nearfull_ratio":`)
		client, _ := talking(t, unused)
		wantSame(t, askAll(t, client), truthOf(t, allRecorded(t)))
		client.Close()
		wantSame(t, truthOf(t, unused), truthOf(t, allRecorded(t)))
		client, _ = talking(t, used)
		defer client.Close()
		for how, said := range map[string]map[string]string{"together": askAll(t, client), "alone": truthOf(t, used)} {
			if !strings.Contains(said["room"], "nearfull_ratio") || !strings.HasSuffix(said["pools"], "<nil>") {
				t.Errorf("%s: the room is %s, the pools are %s", how, said["room"], said["pools"])
			}
		}
	})
}

func TestWhatIsAskedTogetherIsOneProcessAndWhatNeedsAMgrIsNoneOfIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, k := talking(t, allRecorded(t))
		wantSame(t, askAll(t, client), truthOf(t, allRecorded(t)))
		// One more for the mgr, which may hang.
		if k.started() != 2 || len(k.argv) != 0 {
			t.Errorf("%d conversations, and %q", k.started(), k.argv)
		}
		heard := slices.Sorted(slices.Values(k.heard()))
		want := []string{"df", "osd crush rule dump", "osd df", "osd dump", "osd safe-to-destroy 1 2", "osd tree", "pg dump pgs_brief", "status", "version"}
		if !slices.Equal(heard, want) {
			t.Errorf("asked %q, want %q", heard, want)
		}
		client.Close()
	})
}

func TestAConversationGoesOnAsLongAsSomethingIsAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, k := talking(t, allRecorded(t))
		ask := func() {
			if _, err := client.Health(t.Context()); err != nil {
				t.Error(err)
			}
		}
		for range 5 {
			ask()
			time.Sleep(2 * time.Second)
		}
		if k.started() != 1 {
			t.Errorf("%d processes for what was asked in 10 s, want one", k.started())
		}
		// A process is asked nothing when it may end before it has answered.
		for range 5 {
			ask()
			time.Sleep(2 * time.Second)
		}
		if k.started() != 2 {
			t.Errorf("%d processes for what was asked in 20 s, want two", k.started())
		}
		time.Sleep(keepIdle + time.Second)
		if k.over() != k.started() {
			t.Errorf("%d of %d processes have ended, though nothing is asked", k.over(), k.started())
		}
		ask()
		k.move("another/ceph")
		ask()
		if k.started() != 4 {
			t.Errorf("%d processes, want one for the other place", k.started())
		}
		client.Close()
		synctest.Wait()
		if k.over() != k.started() {
			t.Errorf("%d of %d processes have ended when the client was closed", k.over(), k.started())
		}
	})
}

func TestNobodyGetsAnAnswerFromBeforeTheQuestionAlsoInAConversation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, k := talking(t, nil)
		asked := 0
		k.reply = func(string) said {
			asked++
			return said{stdout: fmt.Sprintf(`{"version":"ceph version 16.2.%d"}`, asked) + "\n"}
		}
		for want := 1; want <= 4; want++ {
			if version, err := client.Version(t.Context()); err != nil || version.Patch != want {
				t.Errorf("%v, %v, want 16.2.%d", version, err, want)
			}
		}
		client.Close()
	})
}

// lie is a tree without OSDs: who believes it takes all OSDs for gone.
const lie = `{"nodes":[],"stray":[]}`

func TestWhateverAConversationSaysNoAnswerIsEverThatOfAnotherQuestionOrHalfAnAnswer(t *testing.T) {
	tree, dump := string(recorded(t, "osd-tree-ok")), string(recorded(t, "osd-dump-pools"))
	for name, reply := range map[string]func(line string) said{
		"truncated":                  func(string) said { return said{stdout: tree[:len(tree)/2], ends: true} },
		"truncated in the last line": func(string) said { return said{stdout: strings.TrimSpace(tree), ends: true} },
		"nothing":                    func(string) said { return said{} },
		"nothing, and the end":       func(string) said { return said{ends: true} },
		"answers in another order": func(line string) said {
			return said{stdout: map[string]string{"osd tree": dump, "osd dump": lie}[line] + "\n"}
		},
		"one answer twice": func(string) said { return said{stdout: lie + "\n" + lie + "\n"} },
		"one answer, and an error": func(line string) said {
			return onlyFor("osd dump", line, said{stdout: dump + "\n"}, said{stderr: "Error EPERM: no\n"})
		},
		"an error that is no line yet": func(line string) said {
			return onlyFor("osd tree", line, said{stdout: lie + "\n", stderr: "Error EPERM: no"}, said{})
		},
		"interleaved":                   func(string) said { return said{stdout: lie[:9] + tree + lie[9:] + "\n"} },
		"two on a line":                 func(string) said { return said{stdout: lie + lie + "\n"} },
		"text before":                   func(string) said { return said{stdout: "ok\n" + lie + "\n"} },
		"text behind":                   func(string) said { return said{stdout: lie + " ok\n"} },
		"a value that is two answers":   func(string) said { return said{stdout: `{"nodes":[],"osds":[],"pools":[]}` + "\n"} },
		"values that are no objects":    func(string) said { return said{stdout: "[]\n[[]]\n"} },
		"something on stderr before":    func(string) said { return said{stderr: "Invalid command\n", ends: true} },
		"the errors of old versions":    func(string) said { return said{stderr: "Error: 22 EINVAL\n"} },
		"an interactive prompt":         func(string) said { return said{stdout: "ceph> " + lie + "\n"} },
		"bytes as Python 3 prints them": func(string) said { return said{stdout: "b'" + lie + "'\n"} },
		"a long line on stderr":         func(string) said { return said{stderr: strings.Repeat("x", maxLine+1)} },
		"a word on stderr beside an answer": func(line string) said {
			return said{stdout: map[string]string{"osd tree": lie, "osd dump": dump}[line] + "\n", stderr: "some of it may be wrong\n"}
		},
		"the answer of a like command": func(line string) said {
			return said{stdout: map[string]string{"osd tree": `{"nodes":[],"stray":[],"summary":{}}`, "osd dump": dump}[line] + "\n"}
		},
		"the answer of a longer command": func(string) said { return said{stdout: `{"nodes":[],"health":{}}` + "\n"} },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				answers := allRecorded(t)
				client, k := talking(t, answers)
				k.reply = reply
				truth, err := New(&script{t: t, answers: answers}, Options{}).Tree(t.Context())
				if err != nil || len(truth.OSDs) == 0 {
					t.Fatal(truth, err)
				}
				for range 3 {
					tree, err := client.Tree(t.Context())
					if err != nil || fmt.Sprint(tree) != fmt.Sprint(truth) {
						t.Errorf("%+v, %v, want %+v", tree, err, truth)
					}
				}
				// And where a process of its own cannot say it either, it is an error.
				answers["osd tree"] = answer{exitCode: 1, stderr: "timed out"}
				if tree, err := client.Tree(t.Context()); !errors.Is(err, ErrUnavailable) || len(tree.OSDs) > 0 {
					t.Errorf("%+v, %v, want ErrUnavailable", tree, err)
				}
				client.Close()
			})
		})
	}
}

func TestWhatIsLeftOverFromOneQuestionIsNoPartOfTheNextAnswer(t *testing.T) {
	const rest = `sion":"ceph version 1.2.3"}` + "\n"
	for name, test := range map[string]struct{ left, then said }{
		"half an answer":         {said{stdout: `{"ver`}, said{stdout: rest}},
		"half an error":          {said{stderr: "2026-11-23 "}, said{stdout: `{"ver` + rest}},
		"another answer":         {said{stdout: `{"version":"ceph version 1.2.3"}` + "\n"}, said{}},
		"an error of its own":    {said{stderr: "Error EPERM: no\n"}, said{}},
		"the end of the process": {said{ends: true}, said{}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				answers := allRecorded(t)
				client, k := talking(t, answers)
				want := truthOf(t, answers)["version"]
				first := true
				k.reply = func(line string) said {
					if !first {
						return test.then
					}
					first = false
					truth := k.truth(line)
					return said{stdout: truth.stdout + test.left.stdout, stderr: test.left.stderr, ends: test.left.ends}
				}
				for range 2 {
					version, err := client.Version(t.Context())
					if got := fmt.Sprintf("%+v, %v", version, err); got != want {
						t.Errorf("the version is %s, want %s", got, want)
					}
					synctest.Wait()
				}
				client.Close()
			})
		})
	}
}

func onlyFor(this, line string, then, otherwise said) said {
	if line == this {
		return then
	}
	return otherwise
}

func TestARefusalHasItsExitCodeAndTheRestIsAskedOnInConversations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answers := allRecorded(t)
		answers["osd safe-to-destroy 1 2"] = answer{exitCode: 11, stderr: "Error EAGAIN: not all PGs are known\n"}
		client, k := talking(t, answers)
		for i := 1; i <= 5; i++ {
			if _, err := client.SafeToDestroy(t.Context(), 1, 2); !errors.Is(err, ErrAgain) {
				t.Errorf("got %v, want ErrAgain", err)
			}
			if k.started() != i || len(k.argv) != i {
				t.Errorf("%d conversations and %d processes of their own for %d questions", k.started(), len(k.argv), i)
			}
		}
	})
}

func TestWhatIsLoggedAndRemarkedIsNoError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, k := talking(t, allRecorded(t))
		k.reply = func(line string) said {
			truth := k.truth(line)
			truth.stderr = "2026-11-23T01:07:27.123+0000 7f31 -1 asok(0x7f) AdminSocketConfigObs::init: failed\n" + pgDumpNotice + "\n"
			return truth
		}
		wantSame(t, askAll(t, client), truthOf(t, allRecorded(t)))
		if len(k.argv) != 0 {
			t.Errorf("ran %q", k.argv)
		}
		client.Close()
	})
}

func TestWhereNoConversationCanBeHadNoneIsTriedForTenMinutes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, k := talking(t, allRecorded(t))
		k.deaf = true // as when the program keeps its answers to itself
		ask := func() (took time.Duration) {
			t.Helper()
			began := time.Now()
			if _, err := client.Health(t.Context()); err != nil {
				t.Error(err)
			}
			return time.Since(began)
		}
		for range maxFailures {
			if took := ask(); took != gatherTime+DefaultTimeout/2 {
				t.Errorf("it took %s", took)
			}
		}
		for range 3 {
			time.Sleep(3 * time.Minute)
			if took := ask(); took != gatherTime {
				t.Errorf("it took %s, though it is known that no conversation can be had", took)
			}
		}
		if k.started() != maxFailures || k.over() != maxFailures {
			t.Errorf("%d conversations were tried, %d have ended, want %d", k.started(), k.over(), maxFailures)
		}
		k.hearAgain()
		time.Sleep(time.Minute)
		if ask(); k.started() != maxFailures+1 || len(k.argv) != maxFailures+3 {
			t.Errorf("after ten minutes it is not tried again: %d conversations, %d processes", k.started(), len(k.argv))
		}
		client.Close()
	})
}

func TestACephThatAnswersNobodyIsGivenUpInTimeAndIsNoReasonAgainstConversations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, k := talking(t, map[string]answer{"osd safe-to-destroy 1": {hangs: true}, "version": {stdout: string(recorded(t, "version"))}})
		k.reply = func(line string) said { return onlyFor("version", line, k.truth("version"), said{}) }
		for range 3 {
			began := time.Now()
			_, err := client.SafeToDestroy(t.Context(), 1)
			if took := time.Since(began) - gatherTime; !errors.Is(err, ErrUnavailable) || took != DefaultTimeout+DefaultGrace {
				t.Errorf("%v after %s", err, took)
			}
		}
		began := time.Now()
		if _, err := client.Version(t.Context()); err != nil || time.Since(began) != gatherTime+takes {
			t.Errorf("%v after %s", err, time.Since(began))
		}
		client.Close()
	})
}

func TestASlowMachineIsNoReasonAgainstConversations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answers := allRecorded(t)
		slow := answers["version"]
		slow.takes = 3 * time.Second
		answers["version"] = slow
		client, k := talking(t, answers)
		k.reply = func(line string) said { time.Sleep(8 * time.Second); return k.truth(line) }
		for range 2 * maxFailures {
			if _, err := client.Version(t.Context()); err != nil {
				t.Error(err)
			}
		}
		if k.started() != 2*maxFailures {
			t.Errorf("%d conversations were tried, want %d", k.started(), 2*maxFailures)
		}
		k.reply = nil
		for range 2 {
			if _, err := client.Version(t.Context()); err != nil {
				t.Error(err)
			}
		}
		// Now that it is known to work, it is waited for.
		k.reply = func(line string) said { time.Sleep(8 * time.Second); return k.truth(line) }
		ran := k.ran()
		if _, err := client.Version(t.Context()); err != nil || len(k.ran()) != len(ran) {
			t.Errorf("%v, and ran %q", err, k.ran()[len(ran):])
		}
		client.Close()
	})
}

func TestAMgrThatIsSilentKeepsNobodyElseWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, k := talking(t, map[string]answer{"osd safe-to-destroy 1": {hangs: true}, "status": {stdout: string(recorded(t, "status-ok"))}})
		k.reply = func(line string) said { return onlyFor("status", line, k.truth("status"), said{}) }
		var asking sync.WaitGroup
		asking.Go(func() {
			if _, err := client.SafeToDestroy(t.Context(), 1); !errors.Is(err, ErrUnavailable) {
				t.Errorf("got %v", err)
			}
		})
		for range 3 {
			began := time.Now()
			if _, err := client.Health(t.Context()); err != nil || time.Since(began) != gatherTime+takes {
				t.Errorf("%v after %s", err, time.Since(began))
			}
		}
		asking.Wait()
		client.Close()
	})
}

func TestAConversationEndsWhenNobodyWaitsForItsAnswersAndNotBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, k := talking(t, allRecorded(t))
		k.reply = func(line string) said { time.Sleep(time.Second); return k.truth(line) }
		impatient, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		var asking sync.WaitGroup
		asking.Go(func() {
			if _, err := client.Version(impatient); !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, ErrUnavailable) {
				t.Errorf("the impatient one got %v", err)
			}
		})
		asking.Go(func() {
			if _, err := client.Health(t.Context()); err != nil {
				t.Error(err)
			}
		})
		asking.Wait()
		if k.started() != 1 || k.over() != 0 || len(k.argv) != 0 {
			t.Errorf("%d conversations, %d ended, and %q", k.started(), k.over(), k.argv)
		}
		impatient, cancel = context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		if _, err := client.Version(impatient); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		time.Sleep(2 * time.Second)
		if k.over() != 1 || len(k.argv) != 0 {
			t.Errorf("%d conversations have ended, and %q", k.over(), k.argv)
		}
	})
}

func TestAPanicInAConversationReachesEveryoneWhoWaitsForItsAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, k := talking(t, allRecorded(t))
		k.panics = true
		var asking sync.WaitGroup
		for _, ask := range []func(){
			func() { _, _ = client.Tree(t.Context()) }, func() { _, _ = client.Health(t.Context()) },
		} {
			asking.Go(func() {
				if caught := parallel.Catch(ask); caught == nil || caught.Value != "a defect" {
					t.Errorf("caught %v", caught)
				}
			})
		}
		asking.Wait()
	})
}
