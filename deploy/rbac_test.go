package deploy_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
)

// granted is what an installation grants: by role and where it is bound, a line
// for each rule. This is the contract; the manifests must say exactly this.
var granted = map[string][]string{
	"ekco-cluster in the cluster": {
		" nodes, pods, secrets, services: get, list, delete, deletecollection, update, create, watch",
		"scheduling.k8s.io priorityclasses: get, create",
		"admissionregistration.k8s.io mutatingwebhookconfigurations: get, create, update, delete",
		"monitoring.coreos.com prometheuses, alertmanagers: get, update, patch",
		"apps daemonsets: get, patch",
		"certificates.k8s.io certificatesigningrequests: list",
		"certificates.k8s.io certificatesigningrequests/approval: update",
		"certificates.k8s.io signers [kubernetes.io/kubelet-serving]: approve",
		" namespaces: get, list, delete",
	},
	"ekco-kube-system in kube-system": {
		" configmaps: get, update",
		" pods/exec: create",
	},
	"ekco-pvmigrate in the cluster": {
		" persistentvolumes: list, get, update, delete",
		" persistentvolumeclaims: get, create, delete",
		" pods, pods/log: list, get, delete, create",
		"storage.k8s.io storageclasses: create, get, list, update, delete",
		"apps deployments, statefulsets: get, list, update",
		"apps replicasets: get",
	},
	"ekco-kurl in the cluster": {
		" pods: list, delete",
		"apps deployments, statefulsets: get, update",
	},
	"ekco-velero in the cluster": {
		"velero.io backupstoragelocations, backuprepositories: get, list, update",
	},
	"ekco-rotate-certs in kurl": {
		" pods, pods/log, configmaps, secrets: get, list, delete, create, update, deletecollection",
	},
}

var grantedForRook = map[string][]string{
	"ekco-rook-ceph in rook-ceph": {
		" configmaps: get, patch",
		" pods: list",
		" pods/exec: create",
		"apps deployments, daemonsets: list, delete, get, update",
		"ceph.rook.io cephclusters, cephblockpools, cephfilesystems, cephobjectstores, cephobjectstoreusers: create, get, update, patch",
	},
}

var grantedForMinIO = map[string][]string{
	"ekco-minio in minio": {
		" services, pods: list, get, create, patch",
		" pods/exec: create",
		"apps deployments, statefulsets, statefulsets/scale: list, delete, get, update, create",
		"batch jobs: delete, get, create",
		" persistentvolumeclaims: delete",
	},
}

var grantedForKotsadm = map[string][]string{
	"ekco-kotsadm in default": {
		"apps deployments, statefulsets: list, delete, get, update, create",
	},
}

var optional = map[string][]string{
	"ekco-optional in the cluster": {
		" events: create",
		"certificates.k8s.io certificatesigningrequests: watch",
		" resourcequotas: list",
	},
}

func TestPermissionsAreExactlyThoseOfAnInstallation(t *testing.T) {
	for file, want := range map[string]map[string][]string{
		"rbac.yaml":          granted,
		"rook/rbac.yaml":     grantedForRook,
		"minio/rbac.yaml":    grantedForMinIO,
		"kotsadm/rbac.yaml":  grantedForKotsadm,
		"optional/rbac.yaml": optional,
	} {
		if diff := cmp.Diff(want, grants(t, file)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", file, diff)
		}
	}
}

// grants returns what the manifest grants to service account ekco in kurl.
func grants(t *testing.T, file string) map[string][]string {
	t.Helper()
	rules := map[string][]rbacv1.PolicyRule{}
	bound := map[string][]string{}
	bind := func(where string, ref rbacv1.RoleRef, subjects []rbacv1.Subject) {
		account := rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Name: "ekco", Namespace: "kurl"}
		if len(subjects) != 1 || subjects[0] != account || ref.APIGroup != rbacv1.GroupName {
			t.Errorf("%s: %s is bound to %v", file, ref.Name, subjects)
		}
		key := ref.Kind + "/" + ref.Name
		if ref.Kind == "Role" {
			key = where + "/" + ref.Name
		}
		text := make([]string, 0, len(rules[key]))
		for _, rule := range rules[key] {
			text = append(text, ruleText(rule))
		}
		bound[ref.Name+" in "+where] = text
	}
	for _, object := range read(t, file) {
		switch o := object.(type) {
		case *rbacv1.ClusterRole:
			rules["ClusterRole/"+o.Name] = o.Rules
		case *rbacv1.Role:
			rules[o.Namespace+"/"+o.Name] = o.Rules
		case *rbacv1.ClusterRoleBinding:
			bind("the cluster", o.RoleRef, o.Subjects)
		case *rbacv1.RoleBinding:
			bind(o.Namespace, o.RoleRef, o.Subjects)
		}
	}
	if len(bound) != len(rules) {
		t.Errorf("%s: %d roles and %d bindings", file, len(rules), len(bound))
	}
	return bound
}

func ruleText(rule rbacv1.PolicyRule) string {
	text := strings.Join(rule.APIGroups, ", ") + " " + strings.Join(rule.Resources, ", ")
	if len(rule.ResourceNames) > 0 {
		text += fmt.Sprint(" ", rule.ResourceNames)
	}
	return text + ": " + strings.Join(rule.Verbs, ", ")
}

// TestEveryInstallationGrantsWhatIsNeededWhereItIs: host tasks in namespace kurl, and of HAProxies in
// kube-system what brings them in step.
func TestEveryInstallationGrantsWhatIsNeededWhereItIs(t *testing.T) {
	all := grants(t, "rbac.yaml")
	for namespace, needs := range map[string][]string{
		"kurl": {
			"pods: get", "pods: list", "pods: watch", "pods: create", "pods: delete", "pods/log: get", "nodes: get",
			"configmaps: get", "configmaps: create", "configmaps: update",
		},
		"kube-system": {"nodes: list", "pods: get", "pods: list", "pods/log: get", "pods/exec: create"},
	} {
		for _, needed := range needs {
			if !grantedIn(all, namespace, needed) {
				t.Errorf("nothing grants %s in %s", needed, namespace)
			}
		}
	}
}

func grantedIn(all map[string][]string, namespace, needed string) bool {
	resource, verb, _ := strings.Cut(needed, ": ")
	for where, rules := range all {
		if !strings.HasSuffix(where, " in the cluster") && !strings.HasSuffix(where, " in "+namespace) {
			continue
		}
		for _, rule := range rules {
			resources, verbs, _ := strings.Cut(rule, ": ")
			if slices.Contains(strings.Split(strings.TrimSpace(resources), ", "), resource) && slices.Contains(strings.Split(verbs, ", "), verb) {
				return true
			}
		}
	}
	return false
}

func TestEveryRuleSaysWhatItIsFor(t *testing.T) {
	for _, file := range []string{"rbac.yaml", "rook/rbac.yaml", "minio/rbac.yaml", "kotsadm/rbac.yaml", "optional/rbac.yaml"} {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		before := ""
		for i, line := range strings.Split(string(content), "\n") {
			if strings.HasPrefix(line, "  - apiGroups:") && !strings.HasPrefix(before, "  # ") {
				t.Errorf("%s:%d: the rule has no reason", file, i+1)
			}
			before = line
		}
	}
}
