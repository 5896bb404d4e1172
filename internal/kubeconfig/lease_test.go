package kubeconfig

import (
	"context"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// leased is an API server that answers for the Lease of node worker-1, and a kubeconfig for it.
func leased(t *testing.T, user string, answer http.HandlerFunc) (file File, server string) {
	t.Helper()
	api := httptest.NewTLSServer(answer)
	t.Cleanup(api.Close)
	ca := base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: api.Certificate().Raw}))
	before, _, _ := strings.Cut(ofKubelet, "    client-certificate: ")
	_, path := etc(t, strings.Replace(before, "LS0tLS1CRUdJTg==", ca, 1)+user)
	return File{path}, api.URL
}

const (
	ofToken   = "    token: abc\n"
	ofPlugin  = "    auth-provider: {name: oidc}\n"
	ofProgram = "    exec: {apiVersion: client.authentication.k8s.io/v1, command: \"true\", interactiveMode: Never}\n"
	renewedAt = `{"spec":{"renewTime":"2024-01-02T03:04:05.000000Z"}}`
)

// serves is a server that answers with a text.
func serves(t *testing.T, status int, text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Location", "/elsewhere")
		w.WriteHeader(status)
		if _, err := w.Write([]byte(text)); err != nil {
			t.Error(err)
		}
	}
}

func TestALeaseIsReadWithTheKubeletsCredentials(t *testing.T) {
	asked := ""
	file, server := leased(t, ofToken, func(w http.ResponseWriter, r *http.Request) {
		asked = r.URL.Path + " " + r.Header.Get("Authorization")
		serves(t, http.StatusOK, renewedAt)(w, r)
	})
	renewed, err := file.LeaseRenewed(t.Context(), server+"/", "worker-1")
	if want := time.Date(2024, 1, 2, 3, 4, 5, 0, time.UTC); err != nil || !renewed.Equal(want) {
		t.Errorf("%v: %s", err, renewed)
	}
	if want := "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/worker-1 Bearer abc"; asked != want {
		t.Errorf("asked for %q, want %q", asked, want)
	}
}

func TestWhatIsNoRenewedLeaseIsAnError(t *testing.T) {
	for want, test := range map[string]struct {
		user, text string
		status     int
	}{
		"gets its credentials from a program": {ofProgram, renewedAt, http.StatusOK},
		"credentials from a program, want":    {ofPlugin, renewedAt, http.StatusOK},
		"was never renewed":                   {ofToken, `{"spec":{}}`, http.StatusOK},
		"it answers 403":                      {ofToken, renewedAt, http.StatusForbidden},
		"it answers 302":                      {ofToken, renewedAt, http.StatusFound},
		"unexpected end of JSON":              {ofToken, "", http.StatusOK},
	} {
		file, server := leased(t, test.user, serves(t, test.status, test.text))
		if _, err := file.LeaseRenewed(t.Context(), server, "worker-1"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

func TestAServerOfAnotherCAIsAskedNothing(t *testing.T) {
	asked := false
	file, server := leased(t, ofToken, func(http.ResponseWriter, *http.Request) { asked = true })
	content, err := os.ReadFile(file.Path)
	if err != nil {
		t.Fatal(err)
	}
	before, after, _ := strings.Cut(string(content), "    certificate-authority-data: ")
	_, after, _ = strings.Cut(after, "\n")
	if err := os.WriteFile(file.Path, []byte(before+after), 0o600); err != nil {
		t.Fatal(err)
	}
	for err = context.DeadlineExceeded; errors.Is(err, context.DeadlineExceeded); { // as on a busy machine
		_, err = file.LeaseRenewed(t.Context(), server, "worker-1")
	}
	if err == nil || !strings.Contains(err.Error(), "unknown authority") || asked {
		t.Errorf("%v; asked: %v", err, asked)
	}
}

func TestNothingIsAskedWithoutTLS(t *testing.T) {
	asked := false
	file, _ := leased(t, ofToken, nil)
	plain := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = true
		serves(t, http.StatusOK, renewedAt)(w, r)
	}))
	defer plain.Close()
	if _, err := file.LeaseRenewed(t.Context(), plain.URL, "worker-1"); err == nil || asked {
		t.Errorf("%v; asked: %v", err, asked)
	}
}

// TestAPodIsAwaitedThroughAnAddressOfTheHost: the server there has the certificate of the kubeconfig's server.
func TestAPodIsAwaitedThroughAnAddressOfTheHost(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		server string
		fails  int
		want   string
	}{
		"it fits":                         {"https://example.com:6443", 0, ""},
		"it fits later":                   {"https://example.com:6443", 1, ""},
		"it does not fit":                 {"https://example.com:6443", 1000, "pod haproxy-w1 does not run"},
		"the server is not the kubelet's": {"https://another.com:6443", 0, "certificate is valid for"},
		"it has the name that is wanted":  {"https://another.com:6443\n    tls-server-name: example.com", 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			asked := ""
			file, server := leased(t, ofToken, func(w http.ResponseWriter, r *http.Request) {
				asked = r.URL.Path + " " + r.Header.Get("Authorization")
				serves(t, http.StatusOK, `{"metadata":{"name":"haproxy-w1"}}`)(w, r)
			})
			content, err := os.ReadFile(file.Path)
			if err == nil {
				err = os.WriteFile(file.Path, []byte(strings.Replace(string(content), former, test.server, 1)), 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
			looks, timeout := 0, 5*time.Second
			if test.want == "" {
				timeout = time.Minute // on a busy host
			}
			err = file.AwaitPod(t.Context(), strings.TrimPrefix(server, "https://"), "kube-system", "haproxy-w1", timeout, func(pod *corev1.Pod) error {
				if looks++; looks <= test.fails {
					return errors.New("pod " + pod.Name + " does not run")
				}
				return nil
			})
			if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("%v, want %q", err, test.want)
			}
			if want := "/api/v1/namespaces/kube-system/pods/haproxy-w1 Bearer abc"; asked != want && test.want != "certificate is valid for" {
				t.Errorf("asked for %q", asked)
			}
		})
	}
}

func TestOneAPIServerThatAnswersIsEnough(t *testing.T) {
	file, server := leased(t, ofToken, serves(t, http.StatusOK, renewedAt))
	elsewhere(t, file)
	answers, silent := strings.TrimPrefix(server, "https://"), "127.0.0.1:1"
	if err := file.AnyServes(t.Context(), []string{silent, answers}, "worker-1"); err != nil {
		t.Error(err)
	}
	if err := file.AnyServes(t.Context(), []string{silent}, "worker-1"); err == nil || !strings.Contains(err.Error(), "no API server answers this node at 127.0.0.1:1: ") {
		t.Errorf("got %v", err)
	}
}

func TestAwaitReturnsTheErrorThatSaysMost(t *testing.T) {
	unready, ended := errors.New("it is not ready"), errors.New("the pod is ended")
	for name, test := range map[string]struct {
		// limit is when the caller's context ends, and cancels whether it is canceled then.
		limit   time.Duration
		cancels bool
		// last is what the last question returns, after both contexts have ended.
		last error
		want error
	}{
		"the last question was cut short":      {time.Hour, false, context.DeadlineExceeded, unready},
		"the last question was answered":       {time.Hour, false, nil, nil},
		"the caller's time is over":            {5 * time.Second, false, context.DeadlineExceeded, unready},
		"the caller ends":                      {5 * time.Second, true, context.Canceled, ended},
		"the caller ends, but it was answered": {5 * time.Second, true, nil, nil},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			if test.cancels {
				defer time.AfterFunc(test.limit, func() { cancel(ended) }).Stop()
			} else {
				limited, stop := context.WithTimeout(ctx, test.limit)
				defer stop()
				ctx = limited
			}
			asked, began := 0, time.Now()
			err := await(ctx, 10*time.Second, func(ctx context.Context) error {
				if asked++; asked == 1 {
					if took := time.Since(began); took > 0 {
						t.Errorf("%s: it asks first after %s", name, took)
					}
					return unready
				}
				<-ctx.Done()
				return test.last
			})
			if !errors.Is(err, test.want) || asked != 2 {
				t.Errorf("%s: %v, asked %d times, want %v", name, err, asked, test.want)
			}
		})
	}
}

// elsewhere points the kubeconfig to a name that the server's certificate has.
func elsewhere(t *testing.T, file File) {
	t.Helper()
	content, err := os.ReadFile(file.Path)
	if err == nil {
		err = os.WriteFile(file.Path, []byte(strings.Replace(string(content), former, "https://example.com", 1)), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestAServerThatIsNoURLIsNamedWithoutItsPassword: the error goes on record.
func TestAServerThatIsNoURLIsNamedWithoutItsPassword(t *testing.T) {
	file, _ := leased(t, ofToken, http.NotFound)
	content, err := os.ReadFile(file.Path)
	if err == nil {
		server := regexp.MustCompile(`server: .*`).ReplaceAll(content, []byte("server: https://admin:s3cret@10.0.0.1:64a43"))
		err = os.WriteFile(file.Path, server, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := file.AnyServes(t.Context(), []string{"127.0.0.1:1"}, "worker-1"); err == nil || strings.Contains(err.Error(), "s3cret") || !strings.Contains(err.Error(), "10.0.0.1:64a43") {
		t.Error(err)
	}
}
