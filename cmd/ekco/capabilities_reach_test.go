package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/replicatedhq/ekco/cmd/internal/api"
	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/internal/ceph"
	"github.com/replicatedhq/ekco/internal/clock"
	"github.com/replicatedhq/ekco/internal/config"
	"github.com/replicatedhq/ekco/internal/csr"
	"github.com/replicatedhq/ekco/internal/etcd"
	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/internal/podexec"
	"github.com/replicatedhq/ekco/internal/rook"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/journal/bolt"
)

// reachable is an API server with what the test puts there, JSON by path. It
// answers a watch with silence, and what it lacks with 404.
type reachable struct {
	*httptest.Server
	objects map[string]string

	mu       sync.Mutex
	faulty   string
	requests []string
}

func newReachable(t *testing.T, objects map[string]string) (*reachable, config.Config) {
	t.Helper()
	s := &reachable{objects: objects}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	text := fmt.Sprintf(`{"apiVersion": "v1", "kind": "Config", "current-context": "a", "clusters": [{"name": "a", "cluster": {"server": %q}}],
		"contexts": [{"name": "a", "context": {"cluster": "a", "user": ""}}]}`, s.URL)
	if err := os.WriteFile(kubeconfig, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg := config.Default()
	cfg.Kubeconfig, cfg.CertificatesDir = kubeconfig, t.TempDir()
	return s, cfg
}

// ServeHTTP implements [http.Handler].
func (s *reachable) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.requests = append(s.requests, r.Method+" "+r.URL.Path)
	faulty := s.faulty != "" && strings.Contains(r.URL.Path, s.faulty)
	s.mu.Unlock()
	object, ok := s.objects[r.URL.Path]
	w.Header().Set("Content-Type", "application/json")
	switch {
	case faulty:
		w.WriteHeader(http.StatusServiceUnavailable)
	case r.URL.Query().Get("sendInitialEvents") != "": // as before Kubernetes 1.27
		w.WriteHeader(http.StatusUnprocessableEntity)
		_, _ = io.WriteString(w, `{"apiVersion":"v1","kind":"Status","status":"Failure","reason":"Invalid","code":422}`)
	case r.URL.Query().Get("watch") != "":
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	case ok && r.Method == http.MethodGet:
		_, _ = io.WriteString(w, object)
	default:
		w.WriteHeader(http.StatusNotFound)
		_, _ = io.WriteString(w, `{"apiVersion":"v1","kind":"Status","status":"Failure","reason":"NotFound","code":404}`)
	}
}

// fail has the server answer what has that in its path with 503.
func (s *reachable) fail(path string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faulty = path
}

// count returns how many requests there were that match.
func (s *reachable) count(matches func(string) bool) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, request := range s.requests {
		if matches(request) {
			n++
		}
	}
	return n
}

// deed is a call of a method of a client.
type deed func(context.Context, cluster) error

// client says of one that capabilities get which of its methods change something;
// all others read.
type client struct {
	// what is the type whose methods are meant.
	what    reflect.Type
	changes map[string]deed
	reads   []string
	// asks is a question to the Kubernetes API, nil for a client of something else.
	asks deed
}

// clients are those that capabilities get, by the field of cluster that holds them.
var clients = map[string]client{
	"kube": {
		what: reflect.TypeFor[*kube.Client](),
		changes: map[string]deed{
			"DeleteNode":       func(ctx context.Context, c cluster) error { return c.kube.DeleteNode(ctx, "w1", "u") },
			"ForceDeletePod":   func(ctx context.Context, c cluster) error { return c.kube.ForceDeletePod(ctx, "x", "p", "u") },
			"WriteMirror":      func(ctx context.Context, c cluster) error { _, err := c.kube.WriteMirror(ctx, nil, ""); return err },
			"WriteMirrorPart":  func(ctx context.Context, c cluster) error { return c.kube.WriteMirrorPart(ctx, "p", nil) },
			"DeleteMirrorPart": func(ctx context.Context, c cluster) error { return c.kube.DeleteMirrorPart(ctx, "p") },
			"WriteClusterStatus": func(ctx context.Context, c cluster) error {
				_, err := c.kube.WriteClusterStatus(ctx, "new", "7")
				return err
			},
			"RecordEvent": func(ctx context.Context, c cluster) error {
				return c.kube.RecordEvent(ctx, journal.NodeSubject("w1", "u"), kube.Note{})
			},
		},
		reads: []string{"APIServerPods", "ClusterUID", "KubeadmConfig", "ListNodes", "LocalVolumes", "MirrorParts", "Node", "Nodes", "Pod", "PodLog", "PodsLabelled", "PodsOn", "Probe", "ReadMirror", "Residents", "SecretNamed", "ServerTime"},
		asks:  func(ctx context.Context, c cluster) error { _, err := c.kube.KubeadmConfig(ctx); return err },
	},
	"objects": {
		what: reflect.TypeFor[kube.Objects](),
		changes: map[string]deed{
			"CreateObject": func(ctx context.Context, c cluster) error {
				_, err := c.objects.CreateObject(ctx, anObject, []byte(`{"metadata":{"uid":"u","resourceVersion":"7"}}`))
				return err
			},
			"DeleteObject": func(ctx context.Context, c cluster) error { return c.objects.DeleteObject(ctx, anObject, "u") },
			"EndObject": func(ctx context.Context, c cluster) error {
				return c.objects.EndObject(ctx, anObject, "u", time.Second)
			},
			"PatchObject": func(ctx context.Context, c cluster) error {
				_, err := c.objects.PatchObject(ctx, anObject, []kube.PatchOp{{Op: "test", Path: "/data/a", Value: "a"}, {Op: "replace", Path: "/data/a", Value: "b"}})
				return err
			},
			"ReplaceObject": func(ctx context.Context, c cluster) error {
				_, err := c.objects.ReplaceObject(ctx, anObject, []byte(`{"metadata":{"uid":"u","resourceVersion":"7"}}`))
				return err
			},
		},
		reads: []string{"ReadObject", "ListObjects"},
		asks:  func(ctx context.Context, c cluster) error { _, err := c.objects.ReadObject(ctx, anObject); return err },
	},
	"outside.rook": {
		what: reflect.TypeFor[rook.API](),
		changes: map[string]deed{
			"Exec": func(ctx context.Context, c cluster) error {
				_, _, _, err := c.outside.rook.Exec(ctx, rook.Pod{Name: "tools", Container: "c"}, []string{"ceph", "osd", "purge", "1"})
				return err
			},
			"Interact": func(ctx context.Context, c cluster) error {
				_, err := c.outside.rook.Interact(ctx, rook.Pod{Name: "tools", Container: "c"}, []string{"ceph"}, strings.NewReader("osd out 1\n"), io.Discard, io.Discard)
				return err
			},
			"ScaleDown":        func(ctx context.Context, c cluster) error { return c.outside.rook.ScaleDown(ctx, "osd-1", "u") },
			"DeleteDeployment": func(ctx context.Context, c cluster) error { return c.outside.rook.DeleteDeployment(ctx, "osd-1", "u") },
			"RemoveStorageNode": func(ctx context.Context, c cluster) error {
				_, err := c.outside.rook.RemoveStorageNode(ctx, rook.StorageNode{ClusterUID: "c", Name: "w1"})
				return err
			},
			"AddStorageNode": func(ctx context.Context, c cluster) error {
				return c.outside.rook.AddStorageNode(ctx, rook.StorageNode{ClusterUID: "c", Name: "w9", Entry: []byte(`{"name":"w9"}`)})
			},
		},
		reads: []string{"Detect", "ToolsPod", "OSDDeployments", "StorageNode", "OSDPods"},
		asks:  func(ctx context.Context, c cluster) error { _, err := c.outside.rook.Detect(ctx); return err },
	},
	"outside.ceph": {
		what: reflect.TypeFor[ceph.API](),
		changes: map[string]deed{
			"Down":     func(ctx context.Context, c cluster) error { return c.outside.ceph.Down(ctx, 1) },
			"Out":      func(ctx context.Context, c cluster) error { return c.outside.ceph.Out(ctx, 1) },
			"In":       func(ctx context.Context, c cluster) error { return c.outside.ceph.In(ctx, 1) },
			"Reweight": func(ctx context.Context, c cluster) error { return c.outside.ceph.Reweight(ctx, 1, 0.5) },
			"Purge":    func(ctx context.Context, c cluster) error { return c.outside.ceph.Purge(ctx, ceph.Ref{ID: 1}, false) },
			"SetPoolNumber": func(ctx context.Context, c cluster) error {
				return c.outside.ceph.SetPoolNumber(ctx, ".mgr", ceph.PoolSize, 2, false)
			},
			"SetMonOption":   func(ctx context.Context, c cluster) error { return c.outside.ceph.SetMonOption(ctx, "a", "true") },
			"ResetMonOption": func(ctx context.Context, c cluster) error { return c.outside.ceph.ResetMonOption(ctx, "a") },
			"CrushRemove":    func(ctx context.Context, c cluster) error { return c.outside.ceph.CrushRemove(ctx, "w1") },
		},
		reads: []string{"Version", "Health", "Tree", "Pools", "Room", "PGs", "Exists", "SafeToDestroy", "MonOption"},
		asks:  func(ctx context.Context, c cluster) error { _, err := c.outside.ceph.Version(ctx); return err },
	},
	"csr": {
		what: reflect.TypeFor[csr.API](),
		changes: map[string]deed{"Approve": func(ctx context.Context, c cluster) error {
			request, err := c.csr.Read(ctx, "csr-1")
			if err != nil {
				return err
			}
			return c.csr.Approve(ctx, request, "checked")
		}},
		reads: []string{"Requests", "Read", "Around"},
		asks:  func(ctx context.Context, c cluster) error { _, err := c.csr.Read(ctx, "csr-1"); return err },
	},
	"exec": {
		what: reflect.TypeFor[*podexec.Client](),
		changes: map[string]deed{
			"Exec": func(ctx context.Context, c cluster) error {
				_, _, _, err := c.exec.Exec(ctx, aPod, []string{"true"})
				return err
			},
			"Interact": func(ctx context.Context, c cluster) error {
				_, err := c.exec.Interact(ctx, aPod, []string{"true"}, nil, io.Discard, io.Discard)
				return err
			},
		},
		asks: func(ctx context.Context, c cluster) error {
			_, _, _, err := c.exec.Exec(kube.ReadsOnly(ctx), aPod, []string{"true"})
			return err
		},
	},
	"outside.etcd": {
		what: reflect.TypeFor[etcd.API](),
		changes: map[string]deed{"RemoveMember": func(ctx context.Context, c cluster) error {
			member, err := c.outside.etcd([]string{"https://127.0.0.1:1"})
			if err != nil {
				return err
			}
			return member.RemoveMember(ctx, 1)
		}},
		reads: []string{"Members", "Health"},
	},
}

var aPod = podexec.Pod{Namespace: "kube-system", Name: "haproxy-w1", Container: "haproxy"}

var anObject = kube.Ref{Version: "v1", Resource: "configmaps", Namespace: "kube-system", Name: "kubeadm-config"}

// inRook are objects that a change of them finds.
var inRook = map[string]string{
	"/api/v1/namespaces/kube-system/configmaps/kubeadm-config": `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"kubeadm-config","resourceVersion":"7"},"data":{"ClusterStatus":"old"}}`,
	"/apis/certificates.k8s.io/v1/certificatesigningrequests": `{"apiVersion":"certificates.k8s.io/v1","kind":"CertificateSigningRequestList","items":[
		{"metadata":{"name":"csr-1","uid":"u"},"spec":{"signerName":"kubernetes.io/kubelet-serving","request":""}}]}`,
	"/apis/apps/v1/namespaces/rook-ceph/deployments/osd-1": `{"metadata":{"name":"osd-1","uid":"u","resourceVersion":"7"},"spec":{"replicas":1}}`,
	"/apis/ceph.rook.io/v1/namespaces/rook-ceph/cephclusters/rook-ceph": `{"metadata":{"name":"rook-ceph","uid":"c","resourceVersion":"7"},
		"spec":{"storage":{"useAllNodes":false,"nodes":[{"name":"w1"},{"name":"w2"}]}}}`,
}

func reached(t *testing.T, cfg config.Config, options ringOptions, unanswered func(error)) cluster {
	t.Helper()
	c, err := newClients(cfg, options.clientTerms(cfg, unanswered), api.NewMetrics(), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestEveryClientOfTheListIsTriedAndEveryMethodOfIt(t *testing.T) {
	var fields []string
	for _, field := range reflect.VisibleFields(reflect.TypeFor[cluster]()) {
		switch field.Name {
		case "cfg", "authority", "neighbours", "nodesChanged", "hostRemoved": // settings, and what listens and calls nobody
		case "tasks", "renewalTasks", "rooks": // which go through the other clients
		case "outside":
			for _, beyond := range reflect.VisibleFields(field.Type) {
				fields = append(fields, field.Name+"."+beyond.Name)
			}
		default:
			fields = append(fields, field.Name)
		}
	}
	for _, field := range fields {
		client, ok := clients[field]
		if !ok {
			t.Errorf("nobody says which calls of cluster.%s change something: it needs a row here", field)
			continue
		}
		for method := range client.what.Methods() {
			_, changes := client.changes[method.Name]
			if changes == slices.Contains(client.reads, method.Name) {
				t.Errorf("cluster.%s.%s must be among what changes something or what reads", field, method.Name)
			}
		}
	}
	if len(fields) != len(clients) {
		t.Errorf("there are rows for %d clients, and clients %q", len(clients), fields)
	}
}

func TestInADryRunNoClientChangesAnything(t *testing.T) {
	for _, test := range []struct {
		configured bool
		options    ringOptions
		readOnly   bool
	}{
		{false, ringOptions{}, false},
		{false, ringOptions{OneShot: true, Node: "w1"}, false},
		{true, ringOptions{}, true},
		{true, ringOptions{OneShot: true, Node: "w1"}, true},
		{false, ringOptions{OneShot: true, Node: "w1", DryRun: true}, true},
	} {
		t.Run(fmt.Sprintf("%v %+v", test.configured, test.options), func(t *testing.T) {
			server, cfg := newReachable(t, inRook)
			cfg.DryRun = test.configured
			c := reached(t, cfg, test.options, nil)
			for field, client := range clients {
				for name, change := range client.changes {
					err := change(t.Context(), c)
					refused := errors.Is(err, kube.ErrReadOnly) || errors.Is(err, ceph.ErrReadOnly) || errors.Is(err, etcd.ErrReadOnly)
					if err == nil || refused != test.readOnly {
						t.Errorf("%s.%s: %v, want that it is refused: %v", field, name, err, test.readOnly)
					}
				}
			}
			changed := server.count(func(request string) bool {
				return !strings.HasPrefix(request, "GET ") || strings.HasSuffix(request, "/exec")
			})
			if (changed == 0) != test.readOnly {
				t.Errorf("the API server got %d requests that change something", changed)
			}
		})
	}
}

func TestWhatTheAPIDoesNotAnswerIsReportedWhicheverClientAsked(t *testing.T) {
	for field, client := range clients {
		if client.asks == nil {
			continue
		}
		t.Run(field, func(t *testing.T) {
			server, cfg := newReachable(t, inRook)
			var mu sync.Mutex
			reported := 0
			c := reached(t, cfg, ringOptions{}, func(error) {
				mu.Lock()
				defer mu.Unlock()
				reported++
			})
			for _, faulty := range []string{"", "/"} {
				server.fail(faulty)
				if err := client.asks(t.Context(), c); errors.Is(err, kube.ErrUnavailable) != (faulty != "") {
					t.Errorf("the error is %v", err)
				}
				mu.Lock()
				if (reported > 0) != (faulty != "") {
					t.Errorf("reported %d times while what has %q in its path fails", reported, faulty)
				}
				mu.Unlock()
			}
		})
	}
}

func TestRequestsAreCountedWhicheverClientAsked(t *testing.T) {
	for field, client := range clients {
		if client.asks == nil {
			continue
		}
		t.Run(field, func(t *testing.T) {
			_, cfg := newReachable(t, inRook)
			metrics := api.NewMetrics()
			c, err := newClients(cfg, ringOptions{}.clientTerms(cfg, nil), metrics, slog.New(slog.DiscardHandler))
			if err != nil {
				t.Fatal(err)
			}
			_ = client.asks(t.Context(), c) // it is counted whatever comes of it
			counted, err := testutil.GatherAndCount(metrics.Gatherer(), "ekco_kubernetes_requests_total")
			if err != nil || counted == 0 {
				t.Errorf("%v: %d sorts of request are counted", err, counted)
			}
		})
	}
}

const emptyNodes = `{"apiVersion":"v1","kind":"NodeList","metadata":{"resourceVersion":"1"},"items":[]}`

// A client beside the ring's own meets silence, and the ring asks the API server
// whether it is there.
func TestARingThatRunsHearsOfWhatNoClientWasAnswered(t *testing.T) {
	server, cfg := newReachable(t, map[string]string{
		"/api/v1/namespaces/kube-system": `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"kube-system","uid":"k"}}`,
		"/api/v1/nodes":                  emptyNodes,
		"/readyz":                        "ok",
	})
	store, err := bolt.Open(t.Context(), filepath.Join(t.TempDir(), "journal.db"), bolt.Options{})
	if err != nil {
		t.Fatal(err)
	}
	running, err := newRing(t.Context(), cfg, ringOptions{}, store, clock.New(clock.Process()), api.NewMetrics(), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- running.Run(ctx) }()
	defer func() {
		stop()
		if err := errors.Join(<-ended, store.Close()); err != nil {
			t.Error(err)
		}
	}()
	select {
	case <-running.Identified():
	case err := <-ended:
		t.Fatalf("it ended: %v", err)
	case <-time.After(time.Minute):
		t.Fatal("it does not come up")
	}
	probes := func() int { return server.count(func(request string) bool { return request == "GET /readyz" }) }
	if n := probes(); n != 0 {
		t.Fatalf("it asked %d times whether a server is there that answers", n)
	}
	server.fail("rook-ceph")
	if _, err := running.Backend(archive{store}).Explain(t.Context(), fsm.Request{Kind: journal.ActionPurgeNode, Name: "w8"}); err == nil {
		t.Error("it explains what is done about a node that nobody knows")
	}
	for deadline := time.Now().Add(time.Minute); probes() == 0; {
		if time.Now().After(deadline) {
			t.Fatal("nobody asked the API server whether it is there")
		}
		select {
		case <-time.After(10 * time.Millisecond):
		case <-t.Context().Done():
		}
	}
}

// The monitor would ask once more for each try of a source that tells of its failures
// itself.
func TestWhatSourcesTellOfIsNotReportedAgain(t *testing.T) {
	server, cfg := newReachable(t, nil)
	server.fail("/")
	reports := make(chan error, 100)
	c := reached(t, cfg, ringOptions{}, func(err error) { reports <- err })
	watching := observe(c.kube, time.Now, cfg, nil, slog.New(slog.DiscardHandler))(t.Context(), nodeSources(c, nil), nil)
	asked := func(path string) int {
		return server.count(func(request string) bool { return request == "GET "+path })
	}
	for deadline := time.Now().Add(time.Minute); asked("/api/v1/nodes") < 3 || asked("/readyz") < 2; {
		if time.Now().After(deadline) {
			t.Fatalf("it asked %d times for nodes and %d times for a sign of life", asked("/api/v1/nodes"), asked("/readyz"))
		}
		<-time.After(10 * time.Millisecond)
	}
	watching.Stop()
	select {
	case err := <-reports:
		t.Errorf("reported was %v", err)
	default:
	}
}
