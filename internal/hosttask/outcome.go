package hosttask

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// outcomeMark is the beginning of the line in a task's log that has its outcome.
const outcomeMark = "ekco-outcome "

// maxOutcome is the maximum length of that line in bytes: EKCO writes it to the journal, and containerd splits
// lines of 16 KiB.
const maxOutcome = 12 << 10

// MaxResult is the maximum size of a result as JSON, in bytes.
const MaxResult = maxOutcome - len(outcomeMark) - len(`{"result":}`)

// Outcome is the report of a task at its end.
type Outcome struct {
	// Failed is the reason why the task failed, or empty if it succeeded.
	Failed string `json:"failed,omitempty"`
	// Worse is set with Failed if the change has damaged the node; see [WorseError].
	Worse bool `json:"worse,omitempty"`
	// Waits is set if the program waits for a confirmation; see [Task.Trial].
	Waits bool `json:"waits,omitempty"`
	// Result is the value that the task returns. It must not contain a secret: EKCO logs it and writes it to
	// the journal.
	Result json.RawMessage `json:"result,omitempty"`
}

// WorseError is the error of a program whose change has damaged its node: for example, the program stopped a component
// and could not start it again.
type WorseError struct{ Err error }

// Error implements error.
func (e *WorseError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *WorseError) Unwrap() error { return e.Err }

// Say writes the outcome of a task. It must be the program's last output. The program must exit with 0 even if it
// reports a failure.
func Say(out io.Writer, result any, failed error) error {
	var outcome Outcome
	outcome.Result, failed = encode(result, failed)
	if failed != nil {
		outcome.Failed = shortened(failed.Error())
		_, outcome.Worse = errors.AsType[*WorseError](failed)
	}
	return outcome.write(out)
}

// confirmed is the value of [AnnotationConfirmed] that confirms a change.
const confirmed = "true"

// CheckConfirmed returns an error unless the annotations of the pod of a task with [Task.Trial] confirm its change.
func CheckConfirmed(annotations map[string]string) error {
	switch said := annotations[AnnotationConfirmed]; said {
	case confirmed:
		return nil
	case "":
		return fmt.Errorf("EKCO has not set the annotation %s on this task's pod", AnnotationConfirmed)
	default:
		return fmt.Errorf("EKCO could not verify the change: %s", said)
	}
}

// SayAndWait writes the result of a task with [Task.Trial] before its confirmation. Once the change is confirmed or
// undone, the program must call [Say].
func SayAndWait(out io.Writer, result any) error {
	raw, err := encode(result, nil)
	if err != nil {
		return err
	}
	return Outcome{Result: raw, Waits: true}.write(out)
}

// encode returns the result as JSON, or failed, or an error if the result is too large.
func encode(result any, failed error) (json.RawMessage, error) {
	if failed != nil {
		return nil, failed
	}
	raw, err := json.Marshal(result)
	if err == nil && len(raw) > MaxResult {
		err = fmt.Errorf("its result has %d bytes; the maximum is %d", len(raw), MaxResult)
	}
	if err != nil {
		return nil, err
	}
	return raw, nil
}

func (o Outcome) write(out io.Writer) error {
	line, err := json.Marshal(o)
	if err == nil {
		_, err = fmt.Fprintf(out, "%s%s\n", outcomeMark, line)
	}
	if err != nil {
		return fmt.Errorf("report the outcome of the host task: %w", err)
	}
	return nil
}

// maxReason is the maximum length of a reason, in bytes.
const maxReason = 1000

func shortened(reason string) string {
	if len(reason) <= maxReason {
		return reason
	}
	return strings.ToValidUTF8(reason[:maxReason], "") + " …"
}

// lastLines is the number of lines at the end of a log in which EKCO searches for the outcome. The outcome need not be
// the last line, because a log can reorder lines of standard output and standard error.
const lastLines = 5

// outcomeOf reads the outcome from the end of a log.
func outcomeOf(log string) (Outcome, error) {
	lines := strings.Split(strings.TrimRight(log, "\n"), "\n")
	for _, line := range slices.Backward(lines) {
		text, is := strings.CutPrefix(line, outcomeMark)
		if !is {
			continue
		}
		var outcome Outcome
		if err := json.Unmarshal([]byte(text), &outcome); err != nil {
			return Outcome{}, fmt.Errorf("read its outcome: %w", err)
		}
		if len(outcome.Result) > MaxResult {
			return Outcome{}, fmt.Errorf("its result has %d bytes; the maximum is %d", len(outcome.Result), MaxResult)
		}
		return outcome, nil
	}
	return Outcome{}, fmt.Errorf("it ended without an outcome; the last line of its log is %q", shortened(lines[len(lines)-1]))
}
