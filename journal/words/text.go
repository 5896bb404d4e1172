package words

import (
	"strconv"
	"strings"
	"time"

	"github.com/replicatedhq/ekco/journal"
)

// stampLayout is UTC, as in the logs of Kubernetes.
const stampLayout = "2006-01-02T15:04:05Z"

// Stamp returns a time to the second.
func Stamp(at time.Time) string { return at.UTC().Format(stampLayout) }

// Span returns a duration with few digits: 0.41s, 12.3s, 5m10s, 26h3m, 3d4h.
func Span(d time.Duration) string {
	switch {
	case d < 0:
		return "0s"
	case d < 10*time.Second:
		return seconds(d.Round(10 * time.Millisecond))
	case d < time.Minute:
		return seconds(d.Round(100 * time.Millisecond))
	case d < time.Hour:
		return trimZero(d.Round(time.Second).String(), "m0s", "m")
	case d < 72*time.Hour:
		return trimZero(strings.TrimSuffix(d.Round(time.Minute).String(), "0s"), "h0m", "h")
	}
	hours := int(d.Round(time.Hour).Hours())
	return trimZero(strconv.Itoa(hours/24)+"d"+strconv.Itoa(hours%24)+"h", "d0h", "d")
}

// seconds divides once: [time.Duration.Seconds] rounds twice, so 1.84 s would become 1.8399999999999999.
func seconds(d time.Duration) string {
	return strconv.FormatFloat(float64(d)/float64(time.Second), 'f', -1, 64) + "s"
}

func trimZero(text, zero, short string) string {
	if cut, found := strings.CutSuffix(text, zero); found {
		return cut + short
	}
	return text
}

// Count returns "1 event", "2 events".
func Count[N int | uint64](n N, what string) string {
	text := strconv.FormatUint(uint64(n), 10) + " " + what
	if n != 1 {
		text += "s"
	}
	return text
}

// CountOf is [Count] for words that are more than a noun, or whose plural is not with an s.
func CountOf(n int, one, more string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + more
}

// Because returns ": reason", or nothing without one.
func Because(reason string) string {
	if reason == "" {
		return ""
	}
	return ": " + reason
}

// Held returns why something waits: the reason, then the name of the preflight, by which the documentation lists
// holds.
func Held(check, reason string) string {
	if reason == "" {
		return "check " + check
	}
	return reason + " (" + check + ")"
}

// Ended returns how an action ended and why. A reason that begins with the outcome, like "cancelled by cli:root@p1",
// has both.
func Ended(outcome journal.Outcome, reason string) string {
	if strings.HasPrefix(reason, string(outcome)+" ") {
		return reason
	}
	return string(outcome) + Because(reason)
}

// Object names a subject in a sentence.
func Object(s journal.Subject) string {
	switch {
	case s.Kind == "Cluster" || s.Kind == "":
		return "everything"
	case s.Name == "":
		return strings.ToLower(s.Kind)
	}
	return strings.ToLower(s.Kind) + " " + s.Name
}
