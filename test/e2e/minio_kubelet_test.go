package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/replicatedhq/ekco/test/child"
	"github.com/replicatedhq/ekco/test/loopback"
	miniotest "github.com/replicatedhq/ekco/test/minio"
)

const minioNamespace = "minio"

// minioPrograms are built on first use.
var minioPrograms = sync.OnceValues(func() (miniotest.Programs, error) {
	return miniotest.Build(context.Background(), filepath.Join("..", "minio"))
})

// minioKubelet is what runs MinIO's pods on all nodes: for each that has a node, a real
// server, at an address in 127.0.0.0/8 that is the pod's, with its data in a directory that
// belongs to its claim. It is also the provisioner of local volumes, and kube-proxy for
// Service minio. A node without its simulated kubelet is a machine that is off.
//
// Unlike in a cluster, a replica's address is always the same: nothing here resolves names.
type minioKubelet struct {
	// t is the current scene. owner is the test of the cluster; the servers end with it.
	t, owner *testing.T
	c        *cluster
	dir      string
	network  string
	programs miniotest.Programs
	// proxy is where clients reach Service minio.
	proxy *miniotest.Proxy
	// source is the single MinIO's disk, targets are those of the replicas, if they have some
	// of their own.
	source  *miniotest.Disk
	targets []*miniotest.Disk

	// broken are the replicas whose servers end at once when they are started.
	mu     sync.Mutex
	broken []int

	// seen caches the API server's objects.
	seen *minioObjects
	// What follows is the loop's alone.
	servers map[types.UID]*minioServer
	singles int
	leads   []string
}

// minioServer is the server of a pod.
type minioServer struct {
	process *child.Process
	ip      string
	// killed is when it is killed, having been asked to end.
	killed time.Time
	// spare is how many probes may fail until it is not ready: none before it has answered one.
	spare int
	// period is the probe interval after the first good answer; asked is the time of the last probe.
	period time.Duration
	asked  time.Time
}

// unreadyAfter is how many probes must fail in a row before a server that was ready is not:
// failureThreshold where a manifest names none. A late answer does not count: the machine may be busy.
const unreadyAfter = 3

// minioDisks are the sizes of the disks of the single MinIO and of each replica, in megabytes;
// 0 for none of their own.
type minioDisks struct{ single, replica int }

// startMinioKubelet starts it. It ends with the test, and its servers with it.
func startMinioKubelet(t *testing.T, c *cluster, disks minioDisks) *minioKubelet {
	t.Helper()
	programs, err := minioPrograms()
	if err != nil {
		t.Fatal(err)
	}
	k := &minioKubelet{
		t: t, owner: t, c: c, dir: miniotest.Dir(t), programs: programs, proxy: miniotest.StartProxy(t), servers: map[types.UID]*minioServer{},
		network: loopback.Network(), seen: watchMinioObjects(t, c.client),
	}
	k.mount(disks)
	var loop sync.WaitGroup
	t.Cleanup(loop.Wait)
	loop.Go(func() {
		for t.Context().Err() == nil {
			err := k.sync(t.Context())
			if err != nil && t.Context().Err() == nil {
				t.Logf("the kubelet of MinIO's pods: %v", err)
			}
			select {
			case <-t.Context().Done():
			case <-k.seen.changed:
			case <-time.After(k.pollInterval(err)):
			}
		}
	})
	return k
}

// pollInterval is how long the loop waits without a change in the API server. It is short while a server
// starts or ends.
func (k *minioKubelet) pollInterval(err error) time.Duration {
	for _, server := range k.servers {
		if err != nil || server.spare < unreadyAfter || !server.killed.IsZero() {
			return 100 * time.Millisecond
		}
	}
	return time.Second
}

// mount gives the volumes disks, those to come as well: what a claim had goes with it, the disk
// stays.
func (k *minioKubelet) mount(disks minioDisks) {
	k.t.Helper()
	if disks.single > 0 {
		k.source = miniotest.MountDisk(k.t, filepath.Dir(k.singleData()), disks.single)
	}
	for n := range 6 {
		if disks.replica > 0 {
			k.targets = append(k.targets, miniotest.MountDisk(k.t, filepath.Dir(k.data(n)), disks.replica))
		}
	}
}

// address is that of the nth replica, as HOST:PORT.
func (k *minioKubelet) address(n int) string { return k.ip(n) + ":9000" }

func (k *minioKubelet) ip(n int) string { return fmt.Sprint(k.network, n+1) }

// data is where the nth replica has its data.
func (k *minioKubelet) data(n int) string {
	return filepath.Join(k.dir, fmt.Sprintf("ha-minio-%d", n), "data")
}

// singleData is where the single MinIO has its data.
func (k *minioKubelet) singleData() string { return filepath.Join(k.dir, "minio", "data") }

// serveShell makes the program that is started for an exec into a pod: the shell of this machine, to which
// the directory of the pod's volume is /data.
func (k *minioKubelet) serveShell(program string) {
	k.t.Helper()
	script := fmt.Sprintf(`#!/bin/sh
dir=%s/$POD_NAME/data
case $POD_NAME in ha-minio-*) ;; *) dir=%s ;; esac
[ $# -eq 5 ] && [ "$CONTAINER $1 $2 $5" = "minio sh -c /data" ] || exit 126
exec sh -c "$3" "$4" "$dir"
`, k.dir, k.singleData())
	if err := os.WriteFile(program, []byte(script), 0o700); err != nil {
		k.t.Fatal(err)
	}
}

// objects returns how many versions of objects of a bucket the volume of the nth replica has.
func (k *minioKubelet) objects(n int, bucket string) (count int) {
	k.t.Helper()
	err := filepath.WalkDir(filepath.Join(k.data(n), bucket), func(path string, _ os.DirEntry, err error) error {
		if filepath.Base(path) == "xl.meta" {
			count++
		}
		if os.IsNotExist(err) {
			return nil
		}
		return err
	})
	if err != nil {
		k.t.Fatal(err)
	}
	return count
}

// sync brings all that it does in step with the cluster.
func (k *minioKubelet) sync(ctx context.Context) error {
	if err := k.provision(ctx); err != nil {
		return err
	}
	there := map[types.UID]*corev1.Pod{}
	for _, pod := range k.seen.pods() {
		if k.seen.isUp(pod.Spec.NodeName) {
			there[pod.UID] = pod
		}
	}
	for uid, server := range k.servers {
		if there[uid] == nil { // deleted by force, or its machine is off
			server.process.Kill()
			delete(k.servers, uid)
		}
	}
	for _, pod := range there {
		if err := k.run(ctx, pod); err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			return err
		}
	}
	k.lead()
	return nil
}

// run is what a kubelet does about a pod.
func (k *minioKubelet) run(ctx context.Context, pod *corev1.Pod) error {
	server := k.servers[pod.UID]
	switch {
	case pod.DeletionTimestamp != nil:
		if server != nil && !server.end(pod) {
			return nil
		}
		delete(k.servers, pod.UID)
		now := metav1.NewDeleteOptions(0)
		now.Preconditions = metav1.NewUIDPreconditions(string(pod.UID))
		return k.c.client.CoreV1().Pods(minioNamespace).Delete(ctx, pod.Name, *now)
	case k.breaks(pod):
		if server == nil {
			return nil
		}
		server.process.Kill()
	case server == nil || !server.process.Running():
		volume := k.volume(pod)
		if volume == "" {
			return nil
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		server = k.start(pod, volume)
		k.servers[pod.UID] = server
	}
	return k.tell(ctx, pod, server)
}

// breakDown has the servers of these replicas, and of no others, end at once.
func (k *minioKubelet) breakDown(replicas ...int) {
	k.mu.Lock()
	k.broken = replicas
	k.mu.Unlock()
	k.seen.wake()
}

func (k *minioKubelet) breaks(pod *corev1.Pod) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	n, replica := ordinal(pod.Name)
	return replica && slices.Contains(k.broken, n)
}

// end asks the server to end, kills it when its pod's time is over, and reports whether it has
// ended.
func (s *minioServer) end(pod *corev1.Pod) bool {
	if s.killed.IsZero() {
		s.killed = time.Now().Add(time.Duration(*pod.DeletionGracePeriodSeconds) * time.Second)
		_ = syscall.Kill(s.process.PID(), syscall.SIGTERM) // it fails when the server has ended
	}
	if time.Now().After(s.killed) {
		s.process.Kill()
	}
	return !s.process.Running()
}

// volume returns the name of the pod's volume, "" while it has none.
func (k *minioKubelet) volume(pod *corev1.Pod) string {
	for _, volume := range pod.Spec.Volumes {
		if of := volume.PersistentVolumeClaim; of != nil {
			for _, claim := range k.seen.claims() {
				if claim.Name == of.ClaimName && claim.Status.Phase == corev1.ClaimBound {
					return claim.Spec.VolumeName
				}
			}
		}
	}
	return ""
}

// start starts the server of a pod. Its directory is empty unless the volume is that with
// which the last server ran there.
func (k *minioKubelet) start(pod *corev1.Pod, volume string) *minioServer {
	n, replica := ordinal(pod.Name)
	dir, ip, volumes := k.singleData(), k.ip(n), []string(nil)
	if replica {
		dir = k.data(n)
		for i := range 6 {
			volumes = append(volumes, "http://"+k.address(i)+k.data(i))
		}
	} else {
		k.singles++
		ip, volumes = fmt.Sprint(k.network, 100+k.singles%100), []string{dir}
	}
	owner := dir + ".volume"
	if was, err := os.ReadFile(owner); err != nil || string(was) != volume {
		for _, err := range []error{os.RemoveAll(dir), os.MkdirAll(dir, 0o700), os.WriteFile(owner, []byte(volume), 0o600)} {
			if err != nil {
				k.owner.Error(err)
			}
		}
	}
	env := []string{
		"MINIO_ROOT_USER=" + miniotest.AccessKey, "MINIO_ROOT_PASSWORD=" + miniotest.SecretKey,
		"MINIO_UPDATE=off", "MINIO_BROWSER=off", "HOME=" + filepath.Dir(dir), "MINIO_CI_CD=1", "_MINIO_SERVER_LOCAL=" + ip + ":9000",
	}
	args := append([]string{"server", "--quiet", "--address", ip + ":9000"}, volumes...)
	return &minioServer{process: child.StartWith(k.owner, env, k.programs.Server, args...), ip: ip, period: time.Second}
}

// ordinal returns which replica a pod is, and whether it is one.
func ordinal(pod string) (int, bool) {
	text, found := strings.CutPrefix(pod, "ha-minio-")
	n, err := strconv.Atoi(text)
	return n, found && err == nil
}

// tell sets the status of a pod that runs.
func (k *minioKubelet) tell(ctx context.Context, pod *corev1.Pod, server *minioServer) error {
	ready := corev1.ConditionFalse
	if server.ready(ctx) {
		ready = corev1.ConditionTrue
	}
	if pod.Status.Phase == corev1.PodRunning && isReady(pod) == (ready == corev1.ConditionTrue) {
		return nil
	}
	if isReady(pod) {
		k.owner.Logf("%s is not ready any more, its server runs: %t", pod.Name, server.process.Running())
	}
	now := metav1.Now()
	condition := func(kind corev1.PodConditionType, status corev1.ConditionStatus) corev1.PodCondition {
		return corev1.PodCondition{Type: kind, Status: status, LastTransitionTime: now}
	}
	patch, err := json.Marshal(map[string]any{"status": map[string]any{
		"phase": corev1.PodRunning, "podIP": server.ip, "podIPs": []corev1.PodIP{{IP: server.ip}},
		"conditions": []corev1.PodCondition{
			condition(corev1.PodScheduled, corev1.ConditionTrue), condition(corev1.PodInitialized, corev1.ConditionTrue),
			condition(corev1.ContainersReady, ready), condition(corev1.PodReady, ready),
		},
		"containerStatuses": []corev1.ContainerStatus{{
			Name: "minio", Image: "minio", Ready: ready == corev1.ConditionTrue, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: now}},
		}},
	}})
	if err != nil {
		return err
	}
	_, err = k.c.client.CoreV1().Pods(minioNamespace).Patch(ctx, pod.Name, types.MergePatchType, patch, metav1.PatchOptions{}, "status")
	return err
}

// ready reports whether the server is ready. It probes it if a probe is due.
func (s *minioServer) ready(ctx context.Context) bool {
	if s.spare == unreadyAfter && time.Since(s.asked) < s.period {
		return s.process.Running()
	}
	s.asked = time.Now()
	s.probed(ask(ctx, "http://"+s.ip+":9000/minio/health/ready"))
	return s.spare > 0 && s.process.Running()
}

// probed records a probe's result; late means that no answer came within the timeout.
func (s *minioServer) probed(status int, late bool) {
	switch {
	case status == http.StatusOK:
		s.spare = unreadyAfter
	case !late:
		s.spare = max(0, s.spare-1)
	}
}

func isReady(pod *corev1.Pod) bool {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodReady {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}

// probe reports whether a page answers 200.
func probe(ctx context.Context, url string) bool {
	status, _ := ask(ctx, url)
	return status == http.StatusOK
}

// ask returns the HTTP status of a page, 0 if there is none; late means that no answer came within the
// timeout.
func ask(ctx context.Context, url string) (status int, late bool) {
	ctx, stop := context.WithTimeout(ctx, 5*time.Second)
	defer stop()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return 0, false
	}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Do(request)
	if err != nil {
		return 0, ctx.Err() != nil
	}
	_ = response.Body.Close()
	return response.StatusCode, false
}

// lead is kube-proxy: new connections go to the ready pods of Service minio.
func (k *minioKubelet) lead() {
	var to []string
	for _, pod := range k.seen.pods() {
		if k.seen.selects(pod) && isReady(pod) && pod.DeletionTimestamp == nil {
			to = append(to, pod.Status.PodIP+":9000")
		}
	}
	slices.Sort(to)
	if !slices.Equal(to, k.leads) {
		k.leads = to
		k.proxy.Lead(to...)
	}
}
