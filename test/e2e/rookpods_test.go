package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/replicatedhq/ekco/fsm"
	fsmrookpods "github.com/replicatedhq/ekco/fsm/rookpods"
	"github.com/replicatedhq/ekco/internal/rook"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/test/await"
	"github.com/replicatedhq/ekco/test/kurl"
	standin "github.com/replicatedhq/ekco/test/rook"
)

const sharedFilesystem = "rook-shared-fs"

// startRookPods starts a cluster of one node with Rook's own CRDs, what kURL makes of them, and
// Deployments of Ceph's daemons that run nothing. There is no Ceph: none of this needs one.
func startRookPods(t *testing.T) *cluster {
	t.Helper()
	c := startCluster(t, "--primaries", "1", "--workers", "0")
	c.applyShippedRBAC()
	c.kubectl("create", "namespace", kurl.RookNamespace)
	c.kubectl("create", "-f", kurl.RookCRDs(t, filepath.Join("..", "crds")))
	c.waitRookCRDs()
	c.applyShipped("rook")
	c.apply(kurl.RookStorage("v1.10.6", "primary-1"))
	c.apply(kurl.RookPods("primary-1"))
	for id := range 3 {
		c.apply(kurl.OSDDeployment("primary-1", id))
	}
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{"metadataServer": kurl.SingleNodeMDS()}})
	if err != nil {
		t.Fatal(err)
	}
	c.kubectl("-n", kurl.RookNamespace, "patch", "cephfilesystem", sharedFilesystem, "--type=merge", "--patch", string(patch))
	standin.Start(t, c.config, nil)
	eventually(t, await.HangTimeout, "both MDS run", func() (bool, string) {
		hosts := c.mdsHosts()
		return len(hosts) == 2, fmt.Sprint(hosts)
	})
	return c
}

func (c *cluster) waitRookCRDs() {
	c.t.Helper()
	for _, plural := range kurl.RookPlurals {
		c.kubectl("wait", "--for=condition=Established", "crd/"+plural+".ceph.rook.io", "--timeout="+await.HangTimeout.String())
	}
}

// mdsHosts are the nodes of the MDS that are ready, one for each.
func (c *cluster) mdsHosts() (hosts []string) {
	c.t.Helper()
	pods, err := c.client.CoreV1().Pods(kurl.RookNamespace).List(c.t.Context(), metav1.ListOptions{LabelSelector: "app=rook-ceph-mds"})
	if err != nil {
		c.t.Fatal(err)
	}
	for _, pod := range pods.Items {
		ready := slices.ContainsFunc(pod.Status.Conditions, func(condition corev1.PodCondition) bool {
			return condition.Type == corev1.PodReady && condition.Status == corev1.ConditionTrue
		})
		if ready && pod.DeletionTimestamp == nil {
			hosts = append(hosts, pod.Spec.NodeName)
		}
	}
	return slices.Sorted(slices.Values(hosts))
}

// rookSpec is the spec of one of Rook's custom resources.
func (c *cluster) rookSpec(plural, name string) map[string]any {
	c.t.Helper()
	text, err := c.client.RESTClient().Get().AbsPath("/apis/ceph.rook.io/v1/namespaces", kurl.RookNamespace, plural, name).DoRaw(c.t.Context())
	var object struct {
		Spec map[string]any `json:"spec"`
	}
	if err == nil {
		err = json.Unmarshal(text, &object)
	}
	if err != nil {
		c.t.Fatal(err)
	}
	return object.Spec
}

func (c *cluster) csiConfig() *corev1.ConfigMap {
	c.t.Helper()
	config, err := c.client.CoreV1().ConfigMaps(kurl.RookNamespace).Get(c.t.Context(), kurl.RookOperatorConfig, metav1.GetOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	return config
}

// edit writes a key of the operator's configuration, as somebody would.
func (c *cluster) edit(key, value string) {
	c.t.Helper()
	patch, err := json.Marshal(map[string]any{"data": map[string]string{key: value}})
	if err == nil {
		_, err = c.client.CoreV1().ConfigMaps(kurl.RookNamespace).Patch(c.t.Context(), kurl.RookOperatorConfig, types.MergePatchType, patch, metav1.PatchOptions{})
	}
	if err != nil {
		c.t.Fatal(err)
	}
}

// prioritized says how many workloads of Rook's daemons have which priority class.
func (c *cluster) prioritized() map[string]int {
	c.t.Helper()
	classes := map[string]int{}
	deployments, err := c.client.AppsV1().Deployments(kurl.RookNamespace).List(c.t.Context(), metav1.ListOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	for _, d := range deployments.Items {
		if app := d.Labels["app"]; app != kurl.ToolsPod && app != "rook-ceph-operator" {
			classes[d.Spec.Template.Spec.PriorityClassName]++
		}
	}
	agent, err := c.client.AppsV1().DaemonSets(kurl.RookNamespace).Get(c.t.Context(), kurl.RookAgent, metav1.GetOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	classes[agent.Spec.Template.Spec.PriorityClassName]++
	return classes
}

func TestWhatRookGivesItsPodsFollowsTheNodesUnderTheShippedPermissions(t *testing.T) {
	t.Parallel()
	c := startRookPods(t)
	o := newOperator(t, c.kubeconfigFor("kurl/ekco", nil), map[string]string{
		"maintain_rook_storage_nodes": "false", "settling_time": "200ms", "rook_priority_class": rook.NodeCritical,
		"reconcile_ceph_csi_resources": "true", "reconcile_rook_mds_placement": "true",
	})
	o.startReady()

	// Three OSDs, two MDS, a monitor, a mgr and the agent.
	c.waitPrioritized(o, 8)
	c.wantPrioritized(o)
	alone := kurl.SingleNodeMDS()
	if hosts := c.mdsHosts(); !slices.Equal(hosts, []string{"primary-1", "primary-1"}) {
		t.Errorf("on a single node MDS run on %v", hosts)
	}
	c.wantServer(alone)

	c.node("add", "worker-1", "--role", "worker")
	seldom(t, "the MDS are spread", func() (bool, string) {
		hosts, done := c.mdsHosts(), o.done(journal.ActionSpreadMDS)
		return slices.Equal(hosts, []string{"primary-1", "worker-1"}) && done == 1, fmt.Sprintf("they run on %v, %d actions are done\n%s", hosts, done, o.shown())
	})
	spread := kurl.SingleNodeMDS()
	spread["placement"].(map[string]any)["podAntiAffinity"] = kurl.SpreadMDS()
	c.wantServer(spread)
	if data := c.csiConfig().Data; len(data) != 2 {
		t.Errorf("with two nodes the operator's configuration is %v", data)
	}

	c.node("add", "worker-2", "--role", "worker")
	c.waitResources(o)
	c.fightOverResources(o)
	c.wantAllowed(o)
}

func (c *cluster) waitPrioritized(o *operator, count int) {
	c.t.Helper()
	seldom(c.t, "every daemon has the priority class", func() (bool, string) {
		classes, done := c.prioritized(), o.done(journal.ActionSetPriorityClass)
		return maps.Equal(classes, map[string]int{rook.NodeCritical: count}) && done == count, fmt.Sprintf("%v, %d actions are done\n%s", classes, done, o.shown())
	})
}

// wantPrioritized checks that the class is EKCO's, and that daemons of one kind were restarted
// one after the other.
func (c *cluster) wantPrioritized(o *operator) {
	c.t.Helper()
	class, err := c.client.SchedulingV1().PriorityClasses().Get(c.t.Context(), rook.NodeCritical, metav1.GetOptions{})
	if err != nil || class.Value != 1_000_000_000 || class.GlobalDefault {
		c.t.Errorf("%v: the class is %+v", err, class)
	}
	open := map[string]string{}
	for _, event := range o.events() {
		payload, err := event.Decode()
		if err != nil {
			c.t.Fatal(err)
		}
		switch p := payload.(type) {
		case *journal.ActionRequested:
			input, err := journal.InputOf[journal.RookPodsInput](*p)
			if err != nil || p.Kind != journal.ActionSetPriorityClass {
				continue
			}
			for action, daemon := range open {
				if daemon == input.Daemon {
					c.t.Errorf("%s is asked for while %s is open", event.Action, action)
				}
			}
			open[event.Action] = input.Daemon
		case *journal.ActionEnded:
			delete(open, event.Action)
		}
	}
}

// wantServer compares what is asked of a filesystem's MDS.
func (c *cluster) wantServer(want map[string]any) {
	c.t.Helper()
	if diff := cmp.Diff(asJSON(c.t, want), c.rookSpec("cephfilesystems", sharedFilesystem)["metadataServer"]); diff != "" {
		c.t.Errorf("of the MDS is asked (-want +got):\n%s", diff)
	}
}

// waitResources waits until the CSI pods have EKCO's resources, and nothing else is set.
func (c *cluster) waitResources(o *operator) {
	c.t.Helper()
	want := map[string]string{"ROOK_LOG_LEVEL": "INFO", "CSI_ENABLE_RBD": "true"}
	for _, key := range rook.CSIKeys() {
		want[key] = rook.CSIResources(key)
	}
	seldom(c.t, "the CSI pods have EKCO's resources", func() (bool, string) {
		diff := cmp.Diff(want, c.csiConfig().Data)
		return diff == "", diff + o.shown()
	})
}

// fightOverResources writes the resources otherwise, which is nothing to EKCO, and then sets
// others: twice they are put back, and then EKCO holds and says so.
func (c *cluster) fightOverResources(o *operator) {
	c.t.Helper()
	const key = "CSI_NFS_PLUGIN_RESOURCE"
	ours := rook.CSIResources(key)
	written := strings.ReplaceAll(strings.ReplaceAll(ours, "1Gi", "1024Mi"), "500m", "0.5")
	if written == ours {
		c.t.Fatalf("%s cannot be written otherwise", ours)
	}
	before := o.done(journal.ActionSetCSIResources)
	c.edit(key, written)
	as := c.csiConfig().ResourceVersion
	o.waitLooks("configmaps", 3)
	if now := c.csiConfig(); now.ResourceVersion != as || o.done(journal.ActionSetCSIResources) != before {
		c.t.Errorf("the same resources, written otherwise, are put back: %s", now.Data[key])
	}

	others := strings.ReplaceAll(ours, "1Gi", "2Gi")
	refused := func() (bool, string) {
		refusals := o.status().Refusals
		return slices.ContainsFunc(refusals, func(r fsm.Refusal) bool {
			return r.Kind == journal.ActionSetCSIResources && r.Rule == fsm.RuleContested
		}), fmt.Sprintf("%+v", refusals)
	}
	edits := 0
	for held := false; !held && edits < 5; {
		done := o.done(journal.ActionSetCSIResources)
		c.edit(key, others)
		edits++
		// An edit while the action that put back the one before is open is put back by that
		// same action, and so does not count.
		seldom(c.t, "the edit is put back by an action that has ended, or held", func() (bool, string) {
			var said string
			held, said = refused()
			return held || c.csiConfig().Data[key] == ours && o.done(journal.ActionSetCSIResources) > done, said
		})
	}
	// The first time EKCO set them is one of the three in an hour.
	if edits != 2 && edits != 3 {
		c.t.Errorf("after %d edits EKCO holds", edits)
	}
	if reason := o.waitRefusal(journal.ActionSetCSIResources, fsm.RuleContested).Reason; !strings.Contains(reason, "the resources of Ceph's CSI pods") {
		c.t.Errorf("EKCO says: %s", reason)
	}
	o.waitLooks("configmaps", 3)
	if now := c.csiConfig().Data[key]; now != others {
		c.t.Errorf("what is held is put back all the same: %s", now)
	}
	text := o.mustEkco("status", "--component", fsmrookpods.Machine)
	if !strings.Contains(text, "Behind") {
		c.t.Errorf("status says:\n%s", text)
	}
}

// done counts the actions of a kind that came to their end.
func (o *operator) done(kind journal.ActionKind) (count int) {
	o.t.Helper()
	kinds := map[string]journal.ActionKind{}
	for _, event := range o.events() {
		payload, err := event.Decode()
		if err != nil {
			o.t.Fatal(err)
		}
		switch p := payload.(type) {
		case *journal.ActionRequested:
			kinds[event.Action] = p.Kind
		case *journal.ActionEnded:
			if kinds[event.Action] == kind && p.Outcome == journal.OutcomeDone {
				count++
			}
		}
	}
	return count
}

// requests returns how often EKCO asked the API for something, by the labels of the metric.
func (o *operator) requests() map[string]float64 {
	o.t.Helper()
	_, body := get("http://" + o.address + "/metrics")
	counts := map[string]float64{}
	for line := range strings.Lines(body) {
		labels, found := strings.CutPrefix(line, "ekco_kubernetes_requests_total")
		if !found {
			continue
		}
		var count float64
		labels, value, _ := strings.Cut(labels, " ")
		if _, err := fmt.Sscan(value, &count); err != nil {
			o.t.Fatalf("metric %s: %v", line, err)
		}
		counts[labels] = count
	}
	return counts
}

// waitLooks waits until EKCO has read things of a kind so many times more.
func (o *operator) waitLooks(resource string, more float64) {
	o.t.Helper()
	read := func() (sum float64) {
		for labels, count := range o.requests() {
			if strings.Contains(labels, `resource="`+resource+`"`) && strings.Contains(labels, `verb="get"`) {
				sum += count
			}
		}
		return sum
	}
	before := read()
	eventually(o.t, await.HangTimeout, fmt.Sprintf("EKCO has read %s %g times more", resource, more), func() (bool, string) {
		now := read()
		return now >= before+more, fmt.Sprintf("%g, before %g", now, before)
	})
}

// wantAllowed checks that EKCO asked for nothing that it may not.
func (c *cluster) wantAllowed(o *operator) {
	c.t.Helper()
	all := o.requests()
	for _, resource := range []string{"configmaps", "cephclusters", "cephfilesystems", "deployments", "daemonsets", "priorityclasses", "pods"} {
		allowed := 0.0
		for labels, count := range all {
			switch {
			case !strings.Contains(labels, `resource="`+resource+`"`):
			case strings.Contains(labels, `code="403"`):
				c.t.Errorf("%g requests were forbidden: %s", count, labels)
			case strings.Contains(labels, `code="2`):
				allowed += count
			}
		}
		if allowed == 0 {
			c.t.Errorf("no request for %s was allowed: %v", resource, all)
		}
	}
}

// asJSON is a value as it is read from JSON.
func asJSON(t *testing.T, value any) (read any) {
	t.Helper()
	text, err := json.Marshal(value)
	if err == nil {
		err = json.Unmarshal(text, &read)
	}
	if err != nil {
		t.Fatal(err)
	}
	return read
}
