package secrets

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/replicatedhq/ekco/internal/certificates"
	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/journal"
)

// The ways to restart servers that do not read a new certificate automatically.
const (
	restartNothing = iota
	restartPods
	restartDaemonSet
)

// servers are the pods that serve a certificate.
type servers struct {
	what string
	// The servers are the pods in the namespace of pods with the label. They serve at the port.
	pods         kube.Ref
	label, value string
	port         int
	// restart is the way to restart the servers. For restartDaemonSet, daemons is the DaemonSet.
	restart int
	daemons kube.Ref
	// daemon is the value of label "app" of the DaemonSet's pods.
	daemon string
	// served is the index of the Secret with the certificate that the servers serve.
	served int
	// accepts is set for a client certificate. It returns an error unless a kubelet accepts the certificate.
	accepts func(ctx context.Context, pair tls.Certificate) error
}

// Restarts reports whether servers must be restarted for a new certificate.
func (s *Store) Restarts(of journal.Subject) bool {
	b, known := s.bundles[of.Name]
	return known && b.servers().restart != restartNothing
}

// LoadsFirst reports whether some servers read a new certificate automatically. EKCO waits for these before it restarts
// the other servers, which then trust only the new certificate.
func (s *Store) LoadsFirst(of journal.Subject) bool {
	b, known := s.bundles[of.Name]
	return known && b.servers().restart == restartDaemonSet
}

// Pods lists the pods that must be restarted for a new certificate.
func (s *Store) Pods(ctx context.Context, of journal.Subject) ([]journal.CertificatePod, error) {
	servers := s.bundles[of.Name].servers()
	if servers.restart != restartPods {
		return nil, nil
	}
	all, err := s.serving(ctx, servers)
	if err != nil {
		return nil, err
	}
	var pods []journal.CertificatePod
	for _, p := range all {
		pods = append(pods, journal.CertificatePod{Name: p.Name, UID: string(p.UID)})
	}
	return pods, nil
}

// serving lists the pods that are not terminating and have not ended, sorted by name.
func (s *Store) serving(ctx context.Context, of servers) ([]corev1.Pod, error) {
	pods, err := kube.List[corev1.Pod](ctx, s.objects, of.pods, of.label, of.value)
	if err != nil {
		return nil, err
	}
	pods = slices.DeleteFunc(pods, func(p corev1.Pod) bool {
		return p.DeletionTimestamp != nil || p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
	})
	slices.SortFunc(pods, func(a, b corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	return pods, nil
}

// WhyNotRestarted returns a text about a restart that is not complete, or "": one of the pods does not serve the
// certificate, or the DaemonSet was not restarted after since.
func (s *Store) WhyNotRestarted(ctx context.Context, of journal.Subject, pods []journal.CertificatePod, since time.Time) (lacks string, err error) {
	servers := s.bundles[of.Name].servers()
	switch servers.restart {
	case restartPods:
		left, err := s.outdated(ctx, of, servers, pods)
		if err != nil || len(left) == 0 {
			return "", err
		}
		return fmt.Sprintf("pod %s/%s was not restarted", servers.pods.Namespace, left[0].Name), nil
	case restartDaemonSet:
		read, found, err := kube.Find[appsv1.DaemonSet](ctx, s.objects, servers.daemons)
		if err != nil || !found || !restartedAt(&read).Before(since.Truncate(time.Second)) {
			return "", err
		}
		return "DaemonSet " + servers.daemons.Namespace + "/" + servers.daemons.Name + " was not restarted", nil
	}
	return "", nil
}

// Restart restarts the pods or the DaemonSet that [Store.WhyNotRestarted] reports as not restarted.
func (s *Store) Restart(ctx context.Context, of journal.Subject, pods []journal.CertificatePod, since time.Time) error {
	servers := s.bundles[of.Name].servers()
	switch servers.restart {
	case restartPods:
		left, err := s.outdated(ctx, of, servers, pods)
		if err != nil {
			return err
		}
		for _, p := range left {
			ref := servers.pods
			ref.Name = p.Name
			if err := kube.IgnoreNotFound(s.objects.DeleteObject(ctx, ref, p.UID)); err != nil {
				return err
			}
		}
	case restartDaemonSet:
		return s.restartDaemons(ctx, servers.daemons, since)
	}
	return nil
}

// outdated returns the pods that still exist and do not serve the certificate.
func (s *Store) outdated(ctx context.Context, of journal.Subject, servers servers, pods []journal.CertificatePod) (left []journal.CertificatePod, err error) {
	wanted, err := s.wantedFingerprint(ctx, of, servers)
	if err != nil {
		return nil, err
	}
	live, err := s.serving(ctx, servers)
	if err != nil {
		return nil, err
	}
	for _, p := range live {
		same := func(other journal.CertificatePod) bool { return other.UID == string(p.UID) }
		if slices.ContainsFunc(pods, same) && s.serves(ctx, servers, p, wanted) != "" {
			left = append(left, journal.CertificatePod{Name: p.Name, UID: string(p.UID)})
		}
	}
	return left, nil
}

// wantedFingerprint returns the fingerprint of the certificate that must be served.
func (s *Store) wantedFingerprint(ctx context.Context, of journal.Subject, servers servers) (string, error) {
	_, all, err := s.read(ctx, of)
	if err != nil {
		return "", err
	}
	chain := all[servers.served].chain
	if len(chain) == 0 {
		return "", fmt.Errorf("read %s: it has no certificate that can be read", called(all[servers.served].of.ref))
	}
	return certificates.Fingerprint(chain[0]), nil
}

// handshakeTimeout limits the time of a handshake with one pod.
const handshakeTimeout = 3 * time.Second

// serves returns the reason why a pod does not serve the certificate with the fingerprint, or "".
func (s *Store) serves(ctx context.Context, servers servers, p corev1.Pod, wanted string) string {
	if p.Status.PodIP == "" {
		return "it has no address yet"
	}
	ctx, cancel := context.WithTimeout(ctx, handshakeTimeout)
	defer cancel()
	leaf, err := s.options.Leaf(ctx, net.JoinHostPort(p.Status.PodIP, strconv.Itoa(servers.port)))
	switch {
	case err != nil:
		return err.Error()
	case certificates.Fingerprint(leaf) != wanted:
		return fmt.Sprintf("it serves another certificate, which expires at %s", leaf.NotAfter.UTC().Format(time.RFC3339))
	}
	return ""
}

// WhyNotServed returns the reason why the certificate in the Secret is not in use everywhere, or "". It checks the same
// as [Store.WhyNotLoaded], and also a DaemonSet that must be restarted for the certificate.
func (s *Store) WhyNotServed(ctx context.Context, of journal.Subject, least int) (lacks string, err error) {
	lacks, err = s.WhyNotLoaded(ctx, of, least)
	servers := s.bundles[of.Name].servers()
	if err != nil || servers.restart != restartDaemonSet {
		return lacks, err
	}
	unrolled, err := s.whyNotRolledOut(ctx, servers)
	if lacks != "" && unrolled != "" {
		lacks += "; "
	}
	return lacks + unrolled, err
}

// WhyNotLoaded returns the reason why the servers do not serve the certificate in the Secret, or "". least is the
// minimum number of servers: 0 or 1. If a ready pod serves the certificate, WhyNotLoaded ignores pods that are not
// ready, for example on a lost node: they will read the new certificate when they start.
func (s *Store) WhyNotLoaded(ctx context.Context, of journal.Subject, least int) (lacks string, err error) {
	servers := s.bundles[of.Name].servers()
	if servers.accepts != nil {
		return s.whyNotAccepted(ctx, of, servers)
	}
	wanted, err := s.wantedFingerprint(ctx, of, servers)
	if err != nil {
		return "", err
	}
	pods, err := s.serving(ctx, servers)
	if err != nil {
		return "", err
	}
	var why, unready []string
	serve := 0
	for _, p := range pods {
		name := fmt.Sprintf("pod %s/%s: ", servers.pods.Namespace, p.Name)
		if reason := kube.PodProblem(&p); reason != "" {
			unready = append(unready, name+reason)
		} else if reason := s.serves(ctx, servers, p, wanted); reason != "" {
			why = append(why, name+reason)
		} else {
			serve++
		}
	}
	if serve == 0 {
		why = append(why, unready...)
	}
	if len(pods) < least {
		why = append(why, fmt.Sprintf("no pod of %s runs", servers.what))
	}
	return strings.Join(why, "; "), nil
}

// whyNotAccepted returns the reason why a kubelet does not accept the pair in the Secret, or "".
func (s *Store) whyNotAccepted(ctx context.Context, of journal.Subject, servers servers) (lacks string, err error) {
	_, all, err := s.read(ctx, of)
	if err != nil {
		return "", err
	}
	pair, why := all[servers.served].client()
	if why == nil {
		why = servers.accepts(ctx, pair)
	}
	if why != nil {
		lacks = why.Error()
	}
	return lacks, nil
}

// restartedAnnotation is the annotation that "kubectl rollout restart" sets.
const restartedAnnotation = "kubectl.kubernetes.io/restartedAt"

// restartedAt returns the time of the DaemonSet's last restart, or zero if it is unknown. It ignores a time in the
// future, which would seem later than each restart until that time.
func restartedAt(d *appsv1.DaemonSet) time.Time {
	at, err := time.Parse(time.RFC3339, d.Spec.Template.Annotations[restartedAnnotation])
	if err != nil || time.Until(at) > MostSkew {
		return time.Time{}
	}
	return at
}

// restartDaemons makes the DaemonSet replace its pods according to its update strategy. EKCO only has the permission to
// patch it.
func (s *Store) restartDaemons(ctx context.Context, ref kube.Ref, since time.Time) error {
	read, found, err := kube.Find[appsv1.DaemonSet](ctx, s.objects, ref)
	if err != nil || !found || !restartedAt(&read).Before(since.Truncate(time.Second)) {
		return err
	}
	const path = "/spec/template/metadata/annotations"
	annotations := read.Spec.Template.Annotations
	patch := []kube.PatchOp{{Op: "test", Path: "/metadata/resourceVersion", Value: read.ResourceVersion}}
	if annotations == nil {
		patch = append(patch, kube.PatchOp{Op: "add", Path: path, Value: map[string]string{}})
	}
	patch = append(patch, kube.PatchOp{
		Op: "add", Path: path + "/" + strings.ReplaceAll(restartedAnnotation, "/", "~1"), Value: since.UTC().Format(time.RFC3339),
	})
	_, err = s.objects.PatchObject(ctx, ref, patch)
	return err
}

// whyNotRolledOut returns the reason why the DaemonSet is not restarted on all nodes, or "". Once a new pod is
// available, it ignores pods on nodes that are not ready.
func (s *Store) whyNotRolledOut(ctx context.Context, of servers) (string, error) {
	ref := of.daemons
	read, found, err := kube.Find[appsv1.DaemonSet](ctx, s.objects, ref)
	name := "DaemonSet " + ref.Namespace + "/" + ref.Name
	switch now := read.Status; {
	case err != nil || !found:
		return "", err
	case now.ObservedGeneration < read.Generation:
		return name + ": its controller has not seen the change", nil
	case now.UpdatedNumberScheduled >= now.DesiredNumberScheduled && now.NumberAvailable >= now.DesiredNumberScheduled:
		return "", nil
	}
	now := read.Status
	lost, err := s.lost(ctx, of)
	if err != nil {
		return "", err
	}
	if least := max(1, int(now.DesiredNumberScheduled)-lost); int(now.UpdatedNumberScheduled) >= least && int(now.NumberAvailable) >= least {
		return "", nil
	}
	return fmt.Sprintf("%s: %d of %d pods are new, and %d are available", name, now.UpdatedNumberScheduled, now.DesiredNumberScheduled, now.NumberAvailable), nil
}

// lost counts the nodes that are not ready and have a pod of the DaemonSet, even a terminating one.
func (s *Store) lost(ctx context.Context, of servers) (n int, err error) {
	pods, err := kube.List[corev1.Pod](ctx, s.objects, of.pods, "app", of.daemon)
	if err != nil {
		return 0, err
	}
	seen := map[string]bool{"": true} // ignore pods without a node
	for _, read := range pods {
		if node := read.Spec.NodeName; !seen[node] {
			seen[node] = true
			ready, err := s.nodeReady(ctx, node)
			if err != nil {
				return 0, err
			}
			if !ready {
				n++
			}
		}
	}
	return n, nil
}

func (s *Store) nodeReady(ctx context.Context, name string) (bool, error) {
	node, found, err := kube.Find[corev1.Node](ctx, s.objects, kube.Ref{Version: "v1", Resource: "nodes", Name: name})
	return !found || nodeReady(&node), err // the DaemonSet does not count a node that does not exist
}
