package webhook

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Runner serves the webhooks from the moment when it gets a certificate.
type Runner struct {
	// Address is where the server listens, such as ":443".
	Address string
	Handler http.Handler
	Log     *slog.Logger

	// listen is nil outside tests.
	listen func(ctx context.Context, network, address string) (net.Listener, error)

	// mu guards start and stop of the server.
	mu          sync.Mutex
	certificate atomic.Pointer[Certificate]
	// stop ends the server, and waits for it. It is nil if none was started. done is closed after the server has ended.
	stop  func()
	done  chan struct{}
	ended bool
}

// Use makes the server use a certificate for new connections. It starts the server if it does not run.
func (r *Runner) Use(ctx context.Context, certificate *Certificate) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended {
		return errors.New("serve the webhooks: EKCO is stopping")
	}
	if !r.isRunning() {
		if err := r.start(ctx); err != nil {
			return err
		}
	}
	r.certificate.Store(certificate)
	return nil
}

// isRunning expects mu to be held. A server ends by itself if its listener fails.
func (r *Runner) isRunning() bool {
	select {
	case <-r.done:
		return false
	default:
		return r.stop != nil
	}
}

// start expects mu to be held.
func (r *Runner) start(ctx context.Context) error {
	listen := r.listen
	if listen == nil {
		listen = (&net.ListenConfig{}).Listen
	}
	listener, err := listen(ctx, "tcp", r.Address)
	if err != nil {
		return fmt.Errorf("serve the webhooks on %s: %w", r.Address, err)
	}
	serving, end := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan struct{})
	go func() {
		defer close(done)
		err := Serve(serving, listener, r.Handler, r.present, r.Log)
		r.certificate.Store(nil)
		if err != nil {
			r.Log.Error("the server of the webhooks has ended", "error", err)
		}
	}()
	r.done, r.stop = done, func() {
		end()
		<-done
	}
	return nil
}

func (r *Runner) present() (*tls.Certificate, error) {
	if certificate := r.certificate.Load(); certificate != nil {
		return certificate.TLS(), nil
	}
	return nil, errors.New("the server has no certificate yet")
}

// Serving returns the fingerprint of the certificate that the server uses, or "" if it does not run.
func (r *Runner) Serving() string {
	if certificate := r.certificate.Load(); certificate != nil {
		return certificate.Fingerprint
	}
	return ""
}

// Stop ends the server.
func (r *Runner) Stop() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stop != nil {
		r.stop()
		r.stop = nil
	}
}

// Close ends the server for good.
func (r *Runner) Close() {
	r.Stop()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ended = true
}

// Reach sends a request to the Service like an API server that trusts only the given certificate, and returns nil if the
// server answers.
func Reach(ctx context.Context, service corev1.Service, certificate *Certificate) error {
	address := service.Spec.ClusterIP
	if service.Spec.Type == corev1.ServiceTypeExternalName {
		address = service.Spec.ExternalName
	}
	if address == "" || address == corev1.ClusterIPNone {
		return errors.New("Service kurl/ekco has no address; delete it (kubectl -n kurl delete service ekco), and EKCO creates it again")
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	review, err := json.Marshal(probe())
	if err != nil {
		return fmt.Errorf("encode a request to the webhooks: %w", err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://"+net.JoinHostPort(address, "443")+PathImages, bytes.NewReader(review))
	if err != nil {
		return fmt.Errorf("reach the webhooks through Service kurl/ekco: %w", err)
	}
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM(certificate.CA)
	client := http.Client{Transport: &http.Transport{
		DisableKeepAlives: true, TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: trusted, ServerName: Host},
	}}
	response, err := client.Do(request)
	if err != nil {
		return fmt.Errorf("reach the webhooks through Service kurl/ekco: %w", err)
	}
	defer func() { _ = response.Body.Close() }()
	answer, err := io.ReadAll(io.LimitReader(response.Body, 4<<10))
	var read admissionv1.AdmissionReview
	if err == nil {
		err = json.Unmarshal(answer, &read)
	}
	if err != nil || read.Response == nil || read.Response.UID != "ekco" || !read.Response.Allowed {
		return fmt.Errorf("reach the webhooks through Service kurl/ekco: another program answers there (status %d)", response.StatusCode)
	}
	return nil
}

// probe returns a request for a pod without containers, which the handler leaves unchanged.
func probe() admissionv1.AdmissionReview {
	return admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: admissionv1.SchemeGroupVersion.String(), Kind: "AdmissionReview"},
		Request: &admissionv1.AdmissionRequest{
			UID: "ekco", Operation: admissionv1.Create, Namespace: ServiceRef.Namespace,
			Kind: metav1.GroupVersionKind{Version: "v1", Kind: "Pod"}, Object: runtime.RawExtension{Raw: []byte("{}")},
		},
	}
}
