package rook_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/internal/kube/kubesim"
	"github.com/replicatedhq/ekco/internal/rook"
	"github.com/replicatedhq/ekco/journal"
)

var mdsOfShared = journal.RookMDS("rook-shared-fs")

// installedPods is a Rook of that version with an empty ConfigMap of its operator.
func installedPods(version string) (*kubesim.Objects, *rook.Pods) {
	objects := kubesim.NewObjects()
	objects.Put(rook.OperatorRef(), `{"spec":{"template":{"spec":{"containers":[{"image":"rook/ceph:`+version+`"}]}}}}`)
	objects.Put(rook.ResourceRef(journal.RookCluster), `{"spec":{}}`)
	objects.Put(rook.PodsRef(journal.RookOperatorConfig), `{"data":{"ROOK_LOG_LEVEL":"INFO"}}`)
	return objects, rook.NewPods(objects)
}

func TestQ12ResourcesAreComparedAsQuantitiesAndNotAsText(t *testing.T) {
	const key = "CSI_NFS_PLUGIN_RESOURCE"
	const otherwise = `[{"resource": {"limits": {"cpu": 0.5, "memory": "1048576Ki"}, "requests": {"memory": "536870912", "cpu": "0.25"}}, "name": "csi-nfsplugin"},
		{"name": driver-registrar, "resource": {"requests": {"cpu": 0.05, "memory": "131072Ki"}, "limits": {"cpu": "100m", "memory": "256Mi"}}}]`
	for name, test := range map[string]struct {
		text string
		same bool
	}{
		"EKCO's own":                   {rook.CSIResources(key), true},
		"written otherwise":            {otherwise, true},
		"of another amount":            {strings.Replace(rook.CSIResources(key), "512Mi", "513Mi", 1), false},
		"with one resource more":       {strings.Replace(otherwise, `"cpu": 0.5`, `"cpu": 0.5, "ephemeral-storage": "1Gi"`, 1), false},
		"with one resource less":       {strings.Replace(otherwise, `"cpu": 0.5, `, "", 1), false},
		"without a container":          {rook.CSIResources("CSI_NFS_PROVISIONER_RESOURCE"), false},
		"with one container more":      {rook.CSIResources(key) + "- name: mine\n", false},
		"with one container twice":     {rook.CSIResources(key) + "- name: csi-nfsplugin\n", false},
		"of what is no quantity":       {strings.Replace(rook.CSIResources(key), "512Mi", "much", 1), false},
		"of what is no list":           {"a: b", false},
		"of what nobody can read":      {"- [", false},
		"of nothing":                   {"", false},
		"with a user's own comment":    {"# mine\n" + rook.CSIResources(key), true},
		"with what Rook does not read": {strings.Replace(otherwise, `"name": "csi-nfsplugin"`, `"name": "csi-nfsplugin", "note": "mine"`, 1), true},
	} {
		t.Run(name, func(t *testing.T) {
			objects, pods := installedPods("v1.10.0")
			data := map[string]any{}
			for _, other := range rook.CSIKeys() {
				data[other] = rook.CSIResources(other)
			}
			data[key] = test.text
			objects.Edit(rook.PodsRef(journal.RookOperatorConfig), func(object map[string]any) { object["data"] = data })
			facts, err := pods.Read(t.Context(), journal.RookOperatorConfig)
			if want := []string{key}; err != nil || (len(facts.Differing) == 0) != test.same || !test.same && !slices.Equal(facts.Differing, want) {
				t.Errorf("%v: %+v", err, facts)
			}
		})
	}
}

func TestOnlyTheKeysThatDifferAreSetAndNoOtherIsTouched(t *testing.T) {
	for name, content := range map[string]string{"some data": `{"data":{"MINE":"1","CSI_RBD_PLUGIN_RESOURCE":"- name: mine\n"}}`, "no data": `{}`} {
		objects, pods := installedPods("v1.9.0")
		of := journal.RookOperatorConfig
		objects.Remove(rook.PodsRef(of))
		of.UID = objects.Put(rook.PodsRef(of), content)
		facts, err := pods.Read(t.Context(), of)
		if err != nil || !slices.Equal(facts.Differing, rook.CSIKeys()) || facts.Version != "v1.9.0" {
			t.Fatalf("%s: %v: %+v", name, err, facts)
		}
		input := journal.RookPodsInput{Keys: facts.Differing[1:]}
		set, err := pods.Change(t.Context(), of, input)
		if err != nil || !slices.Equal(set.Differing, facts.Differing[:1]) || input.Lacks(of.Kind, set) != "" {
			t.Errorf("%s: %v: then %+v", name, err, set)
		}
		data := objects.Object(rook.PodsRef(of))["data"].(map[string]any)
		if mine := data["MINE"]; name == "some data" && mine != "1" || data["CSI_RBD_PLUGIN_RESOURCE"] != rook.CSIResources("CSI_RBD_PLUGIN_RESOURCE") {
			t.Errorf("%s: it is %v", name, data)
		}
		if _, err = pods.Change(t.Context(), of, input); err != nil || len(objects.Effects()) != 1 {
			t.Errorf("%s: %v; changed are %v", name, err, objects.Effects())
		}
	}
}

func TestARookThatDoesNotReadTheResourcesIsToldNone(t *testing.T) {
	for version, want := range map[string]struct {
		differs     bool
		unversioned bool
	}{"v1.8.9": {}, "v1.9.0": {differs: true}, "latest": {differs: true, unversioned: true}} {
		_, pods := installedPods(version)
		facts, err := pods.Read(t.Context(), journal.RookOperatorConfig)
		if err != nil || len(facts.Differing) > 0 != want.differs || facts.Unversioned != "" != want.unversioned {
			t.Errorf("%s: %v: %+v", version, err, facts)
		}
	}
}

func TestWithoutACephClusterThereIsNothingToRead(t *testing.T) {
	objects, pods := installedPods("v1.10.0")
	objects.Edit(rook.ResourceRef(journal.RookCluster), func(object map[string]any) {
		object["metadata"].(map[string]any)["deletionTimestamp"] = "2026-01-01T00:00:00Z"
	})
	if _, err := pods.Read(t.Context(), journal.RookOperatorConfig); !errors.Is(err, kube.ErrNotFound) {
		t.Errorf("while it is being deleted: %v", err)
	}
	objects.Remove(rook.ResourceRef(journal.RookCluster))
	if _, err := pods.Change(t.Context(), journal.RookOperatorConfig, journal.RookPodsInput{Keys: rook.CSIKeys()}); !errors.Is(err, kube.ErrNotFound) || len(objects.Effects()) > 0 {
		t.Errorf("without one: %v, %v", err, objects.Effects())
	}
}

const (
	byHost = `{"weight":100,"podAffinityTerm":{"topologyKey":"kubernetes.io/hostname","labelSelector":{"matchExpressions":[{"key":"app","operator":"In","values":["rook-ceph-mds"]}]}}}`
	byZone = `{"weight":50,"podAffinityTerm":{"topologyKey":"topology.kubernetes.io/zone","labelSelector":{"matchExpressions":[{"key":"app","operator":"In","values":["rook-ceph-mds"]}]}}}`
)

// filesystemWith is a CephFilesystem with that podAntiAffinity, and more of a user's.
func filesystemWith(antiAffinity string) string {
	return `{"spec":{"metadataServer":{"activeCount":1,"placement":{"podAntiAffinity":` + antiAffinity + `,"tolerations":[{"key":"mine"}]}}}}`
}

func preferred(terms ...string) string {
	return `{"preferredDuringSchedulingIgnoredDuringExecution":[` + strings.Join(terms, ",") + `]}`
}

func TestOnlyWhatKURLSetsOnASingleNodeIsReplaced(t *testing.T) {
	for name, test := range map[string]struct {
		antiAffinity string
		one          bool
	}{
		"kURL's":                            {preferred(byHost, byZone), true},
		"kURL's, the other way round":       {preferred(byZone, byHost), true},
		"kURL's of old, by another zone":    {preferred(byHost, strings.Replace(byZone, "topology.kubernetes.io", "failure-domain.beta.kubernetes.io", 1)), true},
		"kURL's, with an empty requirement": {`{"requiredDuringSchedulingIgnoredDuringExecution":null,` + preferred(byHost, byZone)[1:], true},
		"one term":                          {preferred(byHost), false},
		"three terms":                       {preferred(byHost, byZone, byZone), false},
		"twice the same":                    {preferred(byHost, byHost), false},
		"another topology":                  {preferred(byHost, strings.Replace(byZone, "topology.kubernetes.io/zone", "rack", 1)), false},
		"of other pods":                     {preferred(byHost, strings.Replace(byZone, "rook-ceph-mds", "mine", 1)), false},
		"in other namespaces":               {preferred(byHost, strings.Replace(byZone, `"topologyKey"`, `"namespaces":["mine"],"topologyKey"`, 1)), false},
		"with a requirement":                {`{"requiredDuringSchedulingIgnoredDuringExecution":[{"topologyKey":"rack"}],` + preferred(byHost, byZone)[1:], false},
		"nothing":                           {`{}`, false},
	} {
		t.Run(name, func(t *testing.T) {
			objects, pods := installedPods("v1.10.0")
			of := mdsOfShared
			fs := objects.Put(rook.PodsRef(of), filesystemWith(test.antiAffinity))
			of.UID = journal.MDSUID(fs)
			facts, err := pods.Read(t.Context(), of)
			if err != nil || facts.OneNode != test.one || facts.Spread || facts.UID != of.UID {
				t.Fatalf("%v: %+v", err, facts)
			}
			before := objects.Object(rook.PodsRef(of))
			set, err := pods.Change(t.Context(), of, journal.RookPodsInput{Nodes: 2})
			if !test.one {
				if !errors.Is(err, kube.ErrConflict) || len(objects.Effects()) > 0 {
					t.Errorf("%v; changed are %v", err, objects.Effects())
				}
				return
			}
			if err != nil || !set.Spread || set.OneNode {
				t.Errorf("%v: set is %+v", err, set)
			}
			placement := before["spec"].(map[string]any)["metadataServer"].(map[string]any)["placement"].(map[string]any)
			var want map[string]any
			zone := strings.Replace(strings.Replace(byZone, "50", "100", 1), "failure-domain.beta", "topology", 1)
			if err := json.Unmarshal([]byte(`{"requiredDuringSchedulingIgnoredDuringExecution":[`+
				byHost[len(`{"weight":100,"podAffinityTerm":`):len(byHost)-1]+`],`+preferred(zone)[1:]), &want); err != nil {
				t.Fatal(err)
			}
			placement["podAntiAffinity"] = want
			if got, wanted := asText(t, objects.Object(rook.PodsRef(of))["spec"]), asText(t, before["spec"]); got != wanted {
				t.Errorf("it is\n%s, want\n%s", got, wanted)
			}
		})
	}
}

func asText(t *testing.T, of any) string {
	t.Helper()
	text, err := json.Marshal(of)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// putMDS puts a pod of an MDS somewhere.
func putMDS(objects *kubesim.Objects, name, filesystem, node, ready string) {
	objects.Put(kube.Ref{Version: "v1", Resource: "pods", Namespace: rook.Namespace, Name: name},
		`{"metadata":{"name":"`+name+`","labels":{"app":"rook-ceph-mds","rook_file_system":"`+filesystem+`"}},"spec":{"nodeName":"`+node+`"},
		"status":{"phase":"Running","conditions":[{"type":"Ready","status":"`+ready+`"}]}}`)
}

func TestTheHostsOfMDSAreThoseWhereTheFilesystemsOwnAreReady(t *testing.T) {
	objects, pods := installedPods("v1.10.0")
	objects.Put(rook.PodsRef(mdsOfShared), filesystemWith(preferred(byHost, byZone)))
	putMDS(objects, "a", "rook-shared-fs", "n2", "True")
	putMDS(objects, "b", "rook-shared-fs", "n1", "True")
	putMDS(objects, "c", "rook-shared-fs", "n2", "True")
	putMDS(objects, "d", "rook-shared-fs", "n3", "False")
	putMDS(objects, "e", "rook-shared-fs", "", "False")
	putMDS(objects, "f", "mine", "n4", "True")
	facts, err := pods.Read(t.Context(), mdsOfShared)
	if err != nil || !slices.Equal(facts.Hosts, []string{"n1", "n2"}) {
		t.Errorf("%v: %q", err, facts.Hosts)
	}
	said, err := pods.MDSPods(t.Context(), mdsOfShared)
	if want := []string{"a runs on n2", "b runs on n1", "c runs on n2", "d is not ready on n3", "e has no node yet"}; err != nil || !slices.Equal(said, want) {
		t.Errorf("%v: %q", err, said)
	}
}

// workloadOf is a Deployment or DaemonSet of a daemon, rolled out.
func workloadOf(app, class string) string {
	return `{"metadata":{"labels":{"app":"` + app + `"}},"spec":{"replicas":1,"template":{"spec":{"priorityClassName":"` + class + `","containers":[{"name":"x"}]}}},
		"status":{"observedGeneration":1,"replicas":1,"updatedReplicas":1,"availableReplicas":1}}`
}

func deploymentRef(name string) kube.Ref {
	return rook.PodsRef(journal.RookWorkload(journal.KindDeployment, name))
}

func TestAPriorityClassIsGivenOnlyWhereThereIsNone(t *testing.T) {
	objects, pods := installedPods("v1.0.4")
	for name, app := range map[string]string{"osd-0": "rook-ceph-osd", "mds-a": "rook-ceph-mds", "mgr-a": "rook-ceph-mgr", "mon-a": "rook-ceph-mon", "tools": "rook-ceph-tools"} {
		objects.Put(deploymentRef(name), workloadOf(app, ""))
	}
	objects.Put(deploymentRef("osd-1"), workloadOf("rook-ceph-osd", "mine"))
	objects.Put(rook.PodsRef(journal.RookAgent), workloadOf("rook-ceph-agent", ""))
	found, err := pods.Workloads(t.Context())
	if err != nil || len(found) != 6 || found[journal.RookAgent].Daemon != "agent" || found[journal.RookWorkload(journal.KindDeployment, "osd-1")].Priority != "mine" {
		t.Fatalf("%v: found %+v", err, found)
	}
	for _, name := range []string{"osd-0", "osd-1"} {
		of := journal.RookWorkload(journal.KindDeployment, name)
		of.UID = found[journal.Subject{Kind: of.Kind, Name: of.Name}].UID
		set, err := pods.Change(t.Context(), of, journal.RookPodsInput{Class: "node-critical", Daemon: "osd"})
		if name == "osd-1" != errors.Is(err, kube.ErrConflict) || name == "osd-0" && (err != nil || set.Priority != "node-critical") {
			t.Errorf("%s: %v: %+v", name, err, set)
		}
	}
	agent := journal.RookAgent
	agent.UID = found[journal.RookAgent].UID
	if set, err := pods.Change(t.Context(), agent, journal.RookPodsInput{Class: "node-critical", Daemon: "agent"}); err != nil || set.Priority != "node-critical" {
		t.Errorf("%v: %+v", err, set)
	}
	agent.UID = "another"
	if _, err := pods.Change(t.Context(), agent, journal.RookPodsInput{Class: "node-critical"}); !errors.Is(err, kube.ErrOtherUID) {
		t.Errorf("of another UID: %v", err)
	}
	if got := asText(t, objects.Object(deploymentRef("osd-0"))["spec"]); got != `{"replicas":1,"template":{"spec":{"containers":[{"name":"x"}],"priorityClassName":"node-critical"}}}` {
		t.Errorf("it is %s", got)
	}
}

func TestAWorkloadIsRolledOutWhenItsNewPodsAreAvailable(t *testing.T) {
	deployment, daemonSet := journal.RookWorkload(journal.KindDeployment, "osd-0"), journal.RookAgent
	for name, test := range map[string]struct {
		of      journal.Subject
		content string
		lacks   string
	}{
		"rolled out":          {deployment, workloadOf("rook-ceph-osd", ""), ""},
		"without replicas":    {deployment, `{"spec":{"replicas":0},"status":{"observedGeneration":1}}`, ""},
		"not seen":            {deployment, strings.Replace(workloadOf("rook-ceph-osd", ""), `"observedGeneration":1`, `"observedGeneration":0`, 1), "its controller has not seen the change yet"},
		"an old pod":          {deployment, strings.Replace(workloadOf("rook-ceph-osd", ""), `"replicas":1,"updated`, `"replicas":2,"updated`, 1), "there are 2 pods, want 1"},
		"unavailable":         {deployment, `{"status":{"observedGeneration":1,"replicas":1,"updatedReplicas":1}}`, "1 of 1 pods are new, and 0 are available"},
		"on all nodes":        {daemonSet, `{"status":{"observedGeneration":1,"desiredNumberScheduled":3,"updatedNumberScheduled":3,"numberAvailable":3}}`, ""},
		"on two of the nodes": {daemonSet, `{"status":{"observedGeneration":1,"desiredNumberScheduled":3,"updatedNumberScheduled":2,"numberAvailable":3}}`, "2 of 3 pods are new, and 3 are available"},
	} {
		objects, pods := installedPods("v1.0.4")
		objects.Put(rook.PodsRef(test.of), test.content)
		if _, lacks, err := pods.RolledOut(t.Context(), test.of); err != nil || lacks != test.lacks {
			t.Errorf("%s: %v: it lacks %q", name, err, lacks)
		}
	}
	objects, pods := installedPods("v1.0.4")
	objects.Put(deploymentRef("osd-0"), `{"metadata":{"labels":{"app":"rook-ceph-osd"}}}`)
	objects.Put(deploymentRef("osd-1"), workloadOf("rook-ceph-osd", ""))
	for of, want := range map[string]string{"osd-0": "", "osd-1": "Deployment rook-ceph/osd-0 is not rolled out: its controller has not seen the change yet"} {
		if lacks, err := pods.OthersRolledOut(t.Context(), journal.RookWorkload(journal.KindDeployment, of), "osd"); err != nil || lacks != want {
			t.Errorf("before %s: %v: %q", of, err, lacks)
		}
	}
	if lacks, err := pods.OthersRolledOut(t.Context(), journal.RookWorkload(journal.KindDeployment, "mon-a"), "mon"); err != nil || lacks != "" {
		t.Errorf("before another daemon's: %v: %q", err, lacks)
	}
}

func TestOnlyTheOnePriorityClassIsCreatedAndNoneReplaced(t *testing.T) {
	objects, pods := installedPods("v1.0.4")
	if err := pods.CreatePriorityClass(t.Context(), "mine"); err == nil || !strings.Contains(err.Error(), "EKCO creates only the priority class node-critical") {
		t.Errorf("a user's: %v", err)
	}
	for range 2 {
		if err := pods.CreatePriorityClass(t.Context(), rook.NodeCritical); err != nil {
			t.Error(err)
		}
	}
	there, err := pods.HasPriorityClass(t.Context(), rook.NodeCritical)
	if class := objects.Object(rook.PriorityClassRef(rook.NodeCritical)); err != nil || !there || class["value"] != 1e9 || class["metadata"].(map[string]any)["resourceVersion"] != "4" {
		t.Errorf("%v: it is %v", err, class)
	}
	objects.Forbid("get priorityclasses node-critical")
	if _, err := pods.HasPriorityClass(t.Context(), rook.NodeCritical); !errors.Is(err, kube.ErrForbidden) {
		t.Errorf("what may not be read: %v", err)
	}
}
