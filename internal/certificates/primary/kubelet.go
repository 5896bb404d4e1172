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
	// Probe is the URL of the pod's probe, or empty.
	Probe string
	// If Probe is empty, Handshake is the address at which the pod serves TLS. Serves is the SHA-256 of the certificate
	// that the pod must serve there. It is empty if any certificate is correct.
	Handshake, Serves string
	// Startup is the time limit of the startup probe.
	Startup time.Duration
}

// canBeChecked reports whether EKCO can check that the pod works.
func (of Static) canBeChecked() bool { return of.Probe != "" || of.Handshake != "" }

// Pod is the pod that the kubelet created for a static pod's manifest. For a changed manifest it creates another pod.
type Pod struct {
	UID string
	// Started is the number of restarts of its container.
	Started int
}

// Kubelet reports the state of static pods on their host, without the API server.
type Kubelet interface {
	// Pods returns the pods of the static pod that have started, the newest first.
	Pods(Static) ([]Pod, error)
	// Answers returns an error unless the probe of the static pod succeeds.
	Answers(context.Context, Static) error
	// LastWords returns the last line of a pod's log.
	LastWords(of Static, uid string) string
}

// OnHost implements [Kubelet]: it finds static pods by their log directories, and probes them.
type OnHost struct{ Logs string }

// Logs is the kubelet's directory for the logs of pods.
const Logs = "/var/log/pods"

var (
	// hashed matches the UID of a static pod: a hash of its manifest. UIDs of other pods have another form.
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
		return "", 0, time.Time{} // the container has not started yet
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
	// probeTimeout limits the time of one request.
	probeTimeout = 2 * time.Second
	// endOfLog and maxWords limit the bytes that are read and reported of the end of a log.
	endOfLog = 16 << 10
	maxWords = 300
)

// Answers implements [Kubelet]. It sends the same request as the kubelet's probe. If there is no httpGet probe, it
// makes a TLS handshake.
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

// serving are the error statuses that only a working server sends. An API server without anonymous access answers every
// probe with 401 or 403, and a busy API server with 429.
var serving = []int{http.StatusUnauthorized, http.StatusForbidden, http.StatusTooManyRequests}

// serves returns an error unless a static pod serves the certificate that it must serve.
func (of Static) serves(ctx context.Context) error {
	if of.Handshake == "" {
		return errNotCheckable
	}
	leaf, err := certificates.Served(ctx, of.Handshake)
	if err == nil && of.Serves != "" && certificates.Fingerprint(leaf) != of.Serves {
		err = fmt.Errorf("the certificate that it serves at %s is not the one in its file", of.Handshake)
	}
	return err
}

// errNotCheckable is the error of a component that EKCO cannot check after a restart.
var errNotCheckable = errors.New("its manifest has neither an httpGet probe nor a secure port, so EKCO could not check that it works after a restart; add a livenessProbe")

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

// withoutPrefix removes the prefix that containerd writes to each line: a time, the stream, and a mark for complete
// lines.
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
