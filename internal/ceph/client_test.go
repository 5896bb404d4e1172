package ceph

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/replicatedhq/ekco/internal/sim"
)

// answer is what a command gives.
type answer struct {
	stdout, stderr string
	exitCode       int
	err            error
	// takes is how long it runs.
	takes time.Duration
	// hangs is set for what never ends, like a command for an absent mgr.
	hangs bool
}

// script is a Runner that answers by ceph's own arguments.
type script struct {
	t       *testing.T
	answers map[string]answer
	mu      sync.Mutex
	argv    [][]string
}

func (s *script) Run(ctx context.Context, argv []string) ([]byte, []byte, int, error) {
	s.mu.Lock()
	s.argv = append(s.argv, argv)
	s.mu.Unlock()
	i := slices.Index(argv, "json")
	given, ok := s.answers[strings.Join(argv[i+1:], " ")]
	if guarded, yes := s.answers["timeout"]; yes && argv[0] == "timeout" {
		given, ok = guarded, true
	}
	if !ok {
		s.t.Errorf("unexpected %q", argv)
	}
	if given.hangs {
		<-ctx.Done()
		return nil, nil, 0, fmt.Errorf("stream: %w", ctx.Err())
	}
	if err := sim.Wait(ctx, given.takes); err != nil {
		return nil, nil, 0, err
	}
	return []byte(given.stdout), []byte(given.stderr), given.exitCode, given.err
}

// ran returns ceph's own arguments of all commands.
func (s *script) ran() []string {
	var commands []string
	for _, argv := range s.argv {
		commands = append(commands, strings.Join(argv[slices.Index(argv, "json")+1:], " "))
	}
	return commands
}

func scripted(t *testing.T, answers map[string]answer) (*Client, *script) {
	s := &script{t: t, answers: answers}
	return New(s, Options{}), s
}

const uuid9 = "00000000-0000-4000-8000-000000000009"

func TestEveryCommandCarriesItsLimitsAndAsksForJSON(t *testing.T) {
	client, s := scripted(t, map[string]answer{"version": {stdout: string(recorded(t, "version"))}})
	if _, err := client.Version(t.Context()); err != nil {
		t.Fatal(err)
	}
	want := []string{"timeout", "-k", "2", "12", "ceph", "--connect-timeout", "8", "-f", "json", "version"}
	if !slices.Equal(s.argv[0], want) {
		t.Errorf("ran %q, want %q", s.argv[0], want)
	}
}

func TestTheTreeNamesTheUUIDs(t *testing.T) {
	client, _ := scripted(t, map[string]answer{
		"osd tree": {stdout: string(recorded(t, "osd-tree-ok"))}, "osd dump": {stdout: string(recorded(t, "osd-dump"))},
	})
	tree, err := client.Tree(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	seen := make(map[string]bool)
	for _, osd := range tree.OSDs {
		seen[osd.UUID] = true
	}
	if len(seen) != 6 || seen[""] {
		t.Errorf("UUIDs %v", seen)
	}
	if want := "ee19a7b3-bf8a-4427-9326-c6239da20874"; tree.FSID != want {
		t.Errorf("the fsid is %q, want %q", tree.FSID, want)
	}
}

func TestExitCodesAreSentinels(t *testing.T) {
	for code, want := range map[int]error{2: ErrNotFound, 11: ErrAgain, 16: ErrBusy, 39: ErrHostNotEmpty} {
		client, _ := scripted(t, map[string]answer{"osd crush rm node1": {exitCode: code, stderr: "Error E: why\n"}})
		err := client.CrushRemove(t.Context(), "node1")
		var refusal *CommandError
		if !errors.Is(err, want) || !errors.As(err, &refusal) {
			t.Errorf("exit code %d: %v", code, err)
		}
		if text := fmt.Sprintf("ceph osd crush rm node1: exit code %d: Error E: why", code); err.Error() != text {
			t.Errorf("the error is %q, want %q", err, text)
		}
	}
}

func TestWhatGaveNoAnswerIsUnavailableAndARefusalIsNot(t *testing.T) {
	for name, test := range map[string]struct {
		given       answer
		unavailable bool
	}{
		"no monitor":              {answer{exitCode: 1, stderr: "timed out"}, true},
		"cannot connect":          {answer{exitCode: 1, stderr: "Error connecting to cluster: ObjectNotFound"}, true},
		"ended by timeout":        {answer{exitCode: 124}, true},
		"killed by timeout":       {answer{exitCode: 137}, true},
		"no ceph in the pod":      {answer{exitCode: 127, stderr: "timeout: failed to run command ‘ceph’: No such file"}, true},
		"the exec failed":         {answer{err: io.ErrUnexpectedEOF}, true},
		"not permitted":           {answer{exitCode: 1, stderr: "Error EPERM: are you SURE?"}, false},
		"an unknown command":      {answer{exitCode: 22, stderr: "Error EINVAL: invalid command"}, false},
		"access denied by caps":   {answer{exitCode: 13, stderr: "Error EACCES: access denied"}, false},
		"something is not empty":  {answer{exitCode: 39}, false},
		"timed out inside of mon": {answer{exitCode: 110, stderr: "Error ETIMEDOUT"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			client, _ := scripted(t, map[string]answer{"osd crush rm node1": test.given})
			err := client.CrushRemove(t.Context(), "node1")
			if err == nil || errors.Is(err, ErrUnavailable) != test.unavailable {
				t.Errorf("got %v", err)
			}
			if test.given.err != nil && !errors.Is(err, test.given.err) {
				t.Errorf("the runner's error is lost: %v", err)
			}
		})
	}
}

func TestACommandThatNeverEndsIsGivenUpAndTheAdministratorIsToldWhereToLook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, _ := scripted(t, map[string]answer{
			"osd purge 9": {hangs: true}, "status": {hangs: true},
		})
		began := time.Now()
		err := client.Purge(t.Context(), Ref{ID: 9}, false)
		if took := time.Since(began); took != DefaultTimeout+DefaultGrace {
			t.Errorf("it took %s", took)
		}
		if !errors.Is(err, ErrUnavailable) || errors.Is(err, context.DeadlineExceeded) ||
			!strings.Contains(err.Error(), "the change may have happened") || !strings.Contains(err.Error(), "app=rook-ceph-mgr") {
			t.Errorf("got %v", err)
		}
		_, err = client.Health(t.Context())
		if !errors.Is(err, ErrUnavailable) || !strings.Contains(err.Error(), "app=rook-ceph-mon") {
			t.Errorf("got %v", err)
		}
	})
}

func TestTheEndOfTheCallersContextIsNoFaultOfCeph(t *testing.T) {
	client, _ := scripted(t, map[string]answer{"status": {hangs: true}})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := client.Health(ctx)
	if !errors.Is(err, context.Canceled) || errors.Is(err, ErrUnavailable) {
		t.Errorf("got %v", err)
	}
}

func TestAPodWithoutTheTimeoutProgramIsUsedWithoutIt(t *testing.T) {
	for name, missing := range map[string]answer{
		"as an exit code": {exitCode: 127, stderr: `exec: "timeout": executable file not found in $PATH`},
		"as an error":     {err: errors.New(`OCI runtime exec failed: exec: "timeout": executable file not found in $PATH`)},
	} {
		t.Run(name, func(t *testing.T) {
			client, s := scripted(t, map[string]answer{"timeout": missing, "version": {stdout: string(recorded(t, "version"))}})
			if _, err := client.Version(t.Context()); err != nil {
				t.Fatal(err)
			}
			if len(s.argv) != 2 || s.argv[1][0] != "ceph" {
				t.Errorf("ran %q", s.argv)
			}
		})
	}
}

func TestACommandHasOneLimitAlsoWhereThePodLacksTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		missing := answer{exitCode: 127, stderr: "timeout: not found", takes: 10 * time.Second}
		client, s := scripted(t, map[string]answer{"timeout": missing, "status": {hangs: true}})
		began := time.Now()
		_, err := client.Health(t.Context())
		if took := time.Since(began) - gatherTime; !errors.Is(err, ErrUnavailable) || took != DefaultTimeout+DefaultGrace || len(s.argv) != 2 {
			t.Errorf("%v after %s and %d tries", err, took, len(s.argv))
		}
	})
}

func TestNothingThatIsNoIDOrNoHostReachesACommandLine(t *testing.T) {
	client, s := scripted(t, nil)
	for _, host := range []string{"", "-f", "--help", "a b", "a;b", "a\nb", "osd.3", "a/b", "$(a)", strings.Repeat("a", 254), "ä"} {
		if err := client.CrushRemove(t.Context(), host); !errors.Is(err, ErrInvalid) {
			t.Errorf("host %q: %v", host, err)
		}
	}
	for _, id := range []int{-1, 1 << 31} {
		_, existsErr := client.Exists(t.Context(), Ref{ID: id})
		_, safeErr := client.SafeToDestroy(t.Context(), 1, id)
		for _, err := range []error{
			existsErr, safeErr, client.Purge(t.Context(), Ref{ID: id}, false), client.Out(t.Context(), id), client.Down(t.Context(), 1, id), client.Down(t.Context()),
		} {
			if !errors.Is(err, ErrInvalid) {
				t.Errorf("id %d: %v", id, err)
			}
		}
	}
	if len(s.argv) != 0 {
		t.Errorf("ran %q", s.argv)
	}
}

func TestAnOSDThatTookOverTheIDIsLeftAlone(t *testing.T) {
	client, s := scripted(t, map[string]answer{
		"osd dump": {stdout: string(recorded(t, "osd-dump"))}, "osd tree": {stdout: string(recorded(t, "osd-tree-ok"))},
	})
	if err := client.Purge(t.Context(), Ref{ID: 9, UUID: uuid9}, false); !errors.Is(err, ErrOtherOSD) {
		t.Errorf("got %v", err)
	}
	if !slices.Equal(s.ran(), []string{"osd dump"}) {
		t.Errorf("ran %q", s.ran())
	}
	if exists, err := client.Exists(t.Context(), Ref{ID: 9, UUID: uuid9}); exists || err != nil {
		t.Errorf("exists: %v, %v", exists, err)
	}
	if exists, err := client.Exists(t.Context(), Ref{ID: 9}); !exists || err != nil {
		t.Errorf("without a UUID it exists: %v, %v", exists, err)
	}
}

func TestPurgeClearsWhatOsdRmLeftBehindAndNothingElse(t *testing.T) {
	answers := map[string]answer{
		"osd purge 9":        {stderr: "osd.9 does not exist"},
		"osd purge 8":        {stderr: "purged osd.8"},
		"osd tree":           {stdout: string(recorded(t, "osd-tree-leftovers"))},
		"osd crush rm osd.9": {}, "auth rm osd.9": {},
	}
	client, s := scripted(t, answers)
	if err := client.Purge(t.Context(), Ref{ID: 9}, false); err != nil {
		t.Fatal(err)
	}
	want := []string{"osd purge 9", "osd tree", "osd crush rm osd.9", "auth rm osd.9"}
	if !slices.Equal(s.ran(), want) {
		t.Errorf("ran %q, want %q", s.ran(), want)
	}
	// An OSD that exists has taken the id over since.
	client, s = scripted(t, answers)
	if err := client.Purge(t.Context(), Ref{ID: 8}, false); err != nil {
		t.Fatal(err)
	}
	if want := want[:2]; len(s.ran()) != len(want) {
		t.Errorf("ran %q", s.ran())
	}
}

func TestAnOSDOfTheMapIsPurgedWithoutALookForRemains(t *testing.T) {
	client, s := scripted(t, map[string]answer{
		"osd dump": {stdout: string(recorded(t, "osd-dump"))}, "osd purge 9": {stderr: "purged osd.9"},
	})
	uuids, err := client.uuids(t.Context())
	if err != nil || uuids[9] == "" {
		t.Fatalf("UUIDs %v, %v", uuids, err)
	}
	if err := client.Purge(t.Context(), Ref{ID: 9, UUID: uuids[9]}, false); err != nil {
		t.Fatal(err)
	}
	if want := []string{"osd dump", "osd dump", "osd purge 9"}; !slices.Equal(s.ran(), want) {
		t.Errorf("ran %q, want %q", s.ran(), want)
	}
}

func TestAnAnswerThatIsNotJSONIsShown(t *testing.T) {
	client, _ := scripted(t, map[string]answer{"status": {stdout: "HEALTH OK"}})
	_, err := client.Health(t.Context())
	if err == nil || !strings.Contains(err.Error(), `ceph status: read the answer "HEALTH OK"`) {
		t.Errorf("got %v", err)
	}
}

func TestOSDsAreMarkedInAgainWithTheirWeight(t *testing.T) {
	client, s := scripted(t, map[string]answer{"osd in 3 12": {}, "osd reweight 12 0.80000": {}})
	if err := client.In(t.Context(), 3, 12); err != nil {
		t.Error(err)
	}
	if err := client.Reweight(t.Context(), 12, 0.8); err != nil {
		t.Error(err)
	}
	for _, weight := range []float64{-0.1, 1.1, math.NaN()} {
		if err := client.Reweight(t.Context(), 12, weight); !errors.Is(err, ErrInvalid) {
			t.Errorf("weight %v: %v", weight, err)
		}
	}
	if len(s.ran()) != 2 {
		t.Errorf("ran %q", s.ran())
	}
}
