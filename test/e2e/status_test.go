package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/user"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/test/await"
)

// status is what the tests judge by of "ekco status -o json". It is stated anew
// here, as whoever reads that output must state it.
type status struct {
	AsOf     time.Time            `json:"as_of"`
	Starting *struct{ To string } `json:"starting"`
	Journal  journalStatus        `json:"journal"`
	API      struct {
		LostAt time.Time `json:"lost_at"`
	} `json:"api"`
	Nodes    []nodeStatus              `json:"nodes"`
	Things   []thingStatus             `json:"things"`
	Actions  []journal.ActionRecord    `json:"actions"`
	Refusals []fsm.Refusal             `json:"refusals"`
	Pauses   map[string]fsm.PauseState `json:"pauses"`
	Absent   []string                  `json:"absent"`
}

type journalStatus struct {
	JournalID string                   `json:"journal_id"`
	LastSeq   uint64                   `json:"last_seq"`
	SafeMode  *journal.JournalSalvaged `json:"safe_mode"`
	Outdated  *journal.JournalOutdated `json:"outdated"`
	Replaced  *journal.JournalReplaced `json:"replaced"`
	Unopened  *struct {
		NextTry time.Time `json:"next_try"`
	} `json:"unopened"`
}

type thingStatus struct {
	Machine string        `json:"machine"`
	Name    string        `json:"name"`
	State   journal.State `json:"state"`
}

type nodeStatus struct {
	Name             string            `json:"name"`
	UID              string            `json:"uid"`
	State            journal.NodeState `json:"state"`
	Since            time.Time         `json:"since"`
	Ready            bool              `json:"ready"`
	Cordoned         bool              `json:"cordoned"`
	UnreachableSince time.Time         `json:"unreachable_since"`
}

// status asks the operator's socket, as "ekco status -o json" does: waits do so some hundred times, and a
// command needs many times as much CPU time. Where no operator answers, it is the command.
func (o *operator) status() status {
	o.t.Helper()
	if answer, err := o.askStatus(); err == nil {
		return answer
	}
	output, err := exec.Command(binaries.ekco, "status", "-o", "json", "--journal", o.journal, "--config", o.config).Output()
	if err != nil {
		o.t.Fatalf("ekco status: %v\n%s", err, output)
	}
	var answer status
	if err := json.Unmarshal(output, &answer); err != nil {
		o.t.Fatalf("ekco status -o json: %v\n%s", err, output)
	}
	return answer
}

// localActor is how the journal names who runs these tests.
func localActor(t testing.TB) string {
	t.Helper()
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	actor := "cli:" + me.Username + "@" + host
	if sudo := os.Getenv("SUDO_USER"); sudo != "" {
		actor += " (sudo by " + sudo + ")"
	}
	return actor
}

func (o *operator) askStatus() (status, error) {
	body, err := o.askSocket("status", struct{}{})
	if err != nil {
		return status{}, err
	}
	defer body.Close()
	var answer struct {
		Value status          `json:"value"`
		Error json.RawMessage `json:"error"`
	}
	if err := json.NewDecoder(body).Decode(&answer); err != nil {
		return status{}, err
	}
	if len(answer.Error) > 0 {
		return status{}, fmt.Errorf("ask for the status: %s", answer.Error)
	}
	return answer.Value, nil
}

// shown is what a wait logs if it fails: the operator's status as JSON.
func (o *operator) shown() string {
	body, err := o.askSocket("status", struct{}{})
	if err != nil {
		return err.Error()
	}
	defer body.Close()
	text, err := io.ReadAll(body)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// askEvents is events for the flags --node and --type; it returns an error for others.
func (o *operator) askEvents(args ...string) ([]journal.Event, error) {
	query, pattern := journal.Query{Since: time.Now().Add(-24 * time.Hour)}, "*"
	for flag := range slices.Chunk(args, 2) {
		switch flag[0] {
		case "--node":
			query.Node = flag[1]
		case "--type":
			pattern = flag[1]
		default:
			return nil, fmt.Errorf("the socket has no flag %s", flag[0])
		}
	}
	body, err := o.askSocket("events", map[string]any{"query": query})
	if err != nil {
		return nil, err
	}
	defer body.Close()
	var events []journal.Event
	for lines := json.NewDecoder(body); ; {
		var line struct {
			Event *journal.Event  `json:"event"`
			Error json.RawMessage `json:"error"`
			End   bool            `json:"end"`
		}
		if err := lines.Decode(&line); err != nil {
			return nil, err
		}
		switch {
		case line.End:
			return events, nil
		case line.Event == nil:
			return nil, fmt.Errorf("ask for events: %s", line.Error)
		}
		if wanted, err := path.Match(pattern, string(line.Event.Type)); err != nil || wanted {
			events = append(events, *line.Event)
		}
	}
}

// askSocket calls the operator's socket.
func (o *operator) askSocket(what string, question any) (io.ReadCloser, error) {
	body, err := json.Marshal(question)
	if err != nil {
		return nil, err
	}
	socket := strings.TrimSuffix(o.journal, filepath.Ext(o.journal)) + ".sock"
	transport := &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", socket)
	}}
	client := http.Client{Transport: transport, Timeout: await.HangTimeout}
	response, err := client.Post("http://ekco/v1/"+what, "application/json", bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(response.Body) // for the error only
		response.Body.Close()
		return nil, fmt.Errorf("%s: %s", response.Status, text)
	}
	return response.Body, nil
}
