package primary

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/replicatedhq/ekco/internal/certificates"
)

// Static is a static pod of the control plane.
type Static struct {
	Namespace, Name, Container string
	// Probe is the URL of its probe.
	Probe string
	// Handshake is the address at which it serves TLS, if it has no such URL. Serves is the SHA-256 of the
	// certificate that it must serve there; empty for any.
	Handshake, Serves string
	// Startup is how long its startup probe lets it start.
	Startup time.Duration
}

// provable reports whether EKCO can check that it works.
func (of Static) provable() bool { return of.Probe != "" || of.Handshake != "" }

// Pod is the pod that the kubelet created for a static pod's manifest. A changed manifest gets another one.
type Pod struct {
	UID string
	// Started counts the starts of its container, from 0 on.
	Started int
}

// Kubelet shows the static pods on their host, without the API server.
type Kubelet interface {
	// Pods returns the pods of a static pod whose containers have been started, the newest first.
	Pods(Static) ([]Pod, error)
	// Answers returns an error unless its probe succeeds.
	Answers(context.Context, Static) error
	// LastWords returns the last line of a pod's log.
	LastWords(of Static, uid string) string
}

// OnHost finds static pods by the kubelet's logs in a directory, and probes them.
type OnHost struct{ Logs string }

// Logs is the kubelet's directory for the logs of pods.
const Logs = "/var/log/pods"

var (
	// hashed is the UID of a static pod: a hash of its manifest. Other pods have other UIDs.
	hashed = regexp.MustCompile(`^[0-9a-f]{32}$`)
	logged = regexp.MustCompile(`^(\d+)\.log$`)
)

// Pods implements [Kubelet].
func (h OnHost) Pods(of Static) ([]Pod, error) {
	entries, err := os.ReadDir(h.Logs)
	if err != nil {
		return nil, fmt.Errorf("list the pods that the kubelet has started: %w", err)
	}
	type dated struct {
		Pod
		at time.Time
	}
	var found []dated
	for _, entry := range entries {
		uid, is := uidOf(entry.Name(), of)
		if !is {
			continue
		}
		if log, n, at := newest(filepath.Join(h.Logs, entry.Name(), of.Container)); log != "" {
			found = append(found, dated{Pod{uid, n}, at})
		}
	}
	slices.SortFunc(found, func(a, b dated) int { return cmp.Or(b.at.Compare(a.at), cmp.Compare(a.UID, b.UID)) })
	var pods []Pod
	for _, one := range found {
		pods = append(pods, one.Pod)
	}
	return pods, nil
}

// uidOf returns the UID of a static pod, whose directory is NAMESPACE_NAME-NODE_UID.
func uidOf(directory string, of Static) (uid string, is bool) {
	parts := strings.Split(directory, "_")
	if len(parts) != 3 || parts[0] != of.Namespace || !strings.HasPrefix(parts[1], of.Name+"-") || !hashed.MatchString(parts[2]) {
		return "", false
	}
	return parts[2], true
}

// newest returns the log of a container's last start.
func newest(dir string) (path string, started int, at time.Time) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return "", 0, time.Time{} // it was not started yet
	}
	for _, entry := range entries {
		found := logged.FindStringSubmatch(entry.Name())
		if found == nil {
			continue
		}
		n, err := strconv.Atoi(found[1])
		info, errInfo := entry.Info()
		if errors.Join(err, errInfo) == nil && (path == "" || n > started) {
			path, started, at = filepath.Join(dir, entry.Name()), n, info.ModTime()
		}
	}
	return path, started, at
}

const (
	// probeTimeout bounds one question.
	probeTimeout = 2 * time.Second
	// endOfLog is how much of a log is read, maxWords how much of it is reported.
	endOfLog = 16 << 10
	maxWords = 300
)

// Answers implements [Kubelet]. It asks as the kubelet's own probe does, or makes a TLS handshake if there is
// no httpGet probe.
func (h OnHost) Answers(ctx context.Context, of Static) error {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	if of.Probe == "" {
		return of.serves(ctx)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, of.Probe, http.NoBody)
	if err != nil {
		return fmt.Errorf("ask %s: %w", of.Name, err)
	}
	transport := &http.Transport{
		DisableKeepAlives: true,
		TLSClientConfig: &tls.Config{
			MinVersion:         tls.VersionTLS12,
			InsecureSkipVerify: true, //nolint:gosec // nothing is sent, and the kubelet asks like this as well
		},
	}
	answer, err := transport.RoundTrip(request)
	if err != nil {
		return fmt.Errorf("ask it at %s: %w", of.Probe, err)
	}
	defer answer.Body.Close()
	if slices.Contains(serving, answer.StatusCode) {
		return nil
	}
	if answer.StatusCode < http.StatusOK || answer.StatusCode >= http.StatusBadRequest {
		text, _ := io.ReadAll(io.LimitReader(answer.Body, maxWords)) // it is only added to the status
		return fmt.Errorf("it answers %s at %s: %s", answer.Status, of.Probe, oneLine(text))
	}
	return nil
}

// serving are error statuses that only a working server sends. An API server without anonymous access sends
// 401 or 403 to every probe, and a busy one 429.
var serving = []int{http.StatusUnauthorized, http.StatusForbidden, http.StatusTooManyRequests}

// serves returns an error unless a static pod serves the certificate that it must serve.
func (of Static) serves(ctx context.Context) error {
	if of.Handshake == "" {
		return errNoProof
	}
	leaf, err := certificates.Served(ctx, of.Handshake)
	if err == nil && of.Serves != "" && certificates.Fingerprint(leaf) != of.Serves {
		err = fmt.Errorf("the certificate that it serves at %s is not the one in its file", of.Handshake)
	}
	return err
}

// errNoProof is the error of a component that EKCO cannot check after a restart.
var errNoProof = errors.New("its manifest has neither an httpGet probe nor a secure port, so EKCO could not see it come back; add a livenessProbe")

// LastWords implements [Kubelet].
func (h OnHost) LastWords(of Static, uid string) string {
	directories, err := filepath.Glob(filepath.Join(h.Logs, of.Namespace+"_"+of.Name+"-*_"+uid))
	if err != nil || len(directories) != 1 || !hashed.MatchString(uid) {
		return ""
	}
	path, _, _ := newest(filepath.Join(directories[0], of.Container))
	if path == "" {
		return ""
	}
	log, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer log.Close()
	if info, err := log.Stat(); err == nil && info.Size() > endOfLog {
		if _, err := log.Seek(-endOfLog, io.SeekEnd); err != nil {
			return ""
		}
	}
	text, err := io.ReadAll(io.LimitReader(log, endOfLog))
	if err != nil {
		return ""
	}
	lines := bytes.Split(bytes.TrimSpace(text), []byte("\n"))
	return oneLine(withoutPrefix(lines[len(lines)-1]))
}

// withoutPrefix removes what containerd writes before each line: a time, the stream, and whether the line is
// complete.
func withoutPrefix(line []byte) []byte {
	parts := bytes.SplitN(line, []byte(" "), 4)
	if len(parts) == 4 && (string(parts[1]) == "stderr" || string(parts[1]) == "stdout") {
		return parts[3]
	}
	return line
}

func oneLine(text []byte) string {
	line := strings.Join(strings.Fields(strings.ToValidUTF8(string(text), "")), " ")
	if len(line) > maxWords {
		return strings.ToValidUTF8(line[:maxWords], "") + "…"
	}
	return line
}
