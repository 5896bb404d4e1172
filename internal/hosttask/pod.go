package hosttask

import (
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Labels and annotations of the pods.
const (
	// LabelHostTask marks the pods of all host tasks. Its value is "true".
	LabelHostTask = "ekco.kurl.sh/host-task"
	// LabelTask has the name of the task. Earlier versions of EKCO use the same label.
	LabelTask = "kurl.sh/task"
	// LabelOwner identifies the step that a pod belongs to.
	LabelOwner = "ekco.kurl.sh/owner"
	// AnnotationAction and AnnotationStep name the step that a pod belongs to.
	AnnotationAction = "ekco.kurl.sh/action"
	AnnotationStep   = "ekco.kurl.sh/step"
	// annotationStart is the time limit for the start of the pod.
	annotationStart = "ekco.kurl.sh/start-within"
	// annotationLosesNode marks the pods of tasks with [Task.LosesNode]; its value is "true".
	annotationLosesNode = "ekco.kurl.sh/loses-node"
	// AnnotationConfirmed on the pod of a task with [Task.Trial] is "true" if EKCO confirms the change. Otherwise it is
	// the reason why the program must undo the change.
	AnnotationConfirmed = "ekco.kurl.sh/confirmed"
)

// EnvPod and EnvNamespace are environment variables with the pod's name and namespace.
const (
	EnvPod       = "POD_NAME"
	EnvNamespace = "POD_NAMESPACE"
)

// EnvNode is the environment variable with the name of the node.
const EnvNode = "HOSTNAME"

// pod returns the task's pod as JSON.
func (t Task) pod(namespace string, owner Owner) (json.RawMessage, error) {
	// The deadline of a pod starts when the kubelet accepts the pod, before it pulls the image.
	grace, deadline := int64(t.grace()/time.Second), int64((t.start()+t.limit())/time.Second)
	pod := &corev1.Pod{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: t.PodName(owner),
			Labels:      map[string]string{LabelHostTask: "true", LabelTask: t.Name, LabelOwner: owner.key()},
			Annotations: map[string]string{AnnotationAction: owner.Action, AnnotationStep: owner.Step, annotationStart: t.start().String()},
		},
		Spec: corev1.PodSpec{
			// NodeName bypasses the scheduler, which may be down, and works on a cordoned node. No label identifies a
			// node reliably.
			NodeName:                      t.Node,
			HostNetwork:                   t.HostNetwork,
			RestartPolicy:                 corev1.RestartPolicyNever,
			ActiveDeadlineSeconds:         &deadline,
			TerminationGracePeriodSeconds: &grace,
			AutomountServiceAccountToken:  new(false),
			EnableServiceLinks:            new(false),
			Tolerations:                   []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
			Containers:                    []corev1.Container{t.container()},
			Volumes:                       t.volumes(),
		},
	}
	if t.LosesNode {
		pod.Annotations[annotationLosesNode] = "true"
	}
	if t.Then != nil {
		first, then := t.container(), t.container()
		first.Name = "prepare"
		then.Image, then.Command, then.Args = t.Then.Image, t.Then.Command, nil
		pod.Spec.InitContainers, pod.Spec.Containers = []corev1.Container{first}, []corev1.Container{then}
	}
	raw, err := json.Marshal(pod)
	if err != nil {
		return nil, fmt.Errorf("write the pod of host task %s: %w", t.Name, err)
	}
	return raw, nil
}

func (t Task) container() corev1.Container {
	container := corev1.Container{
		Name: "task", Image: t.Image, ImagePullPolicy: corev1.PullIfNotPresent,
		Command: []string{"/usr/bin/ekco"}, Args: t.Args,
		Env: []corev1.EnvVar{{Name: EnvNode, Value: t.Node}, fromField(EnvPod, "metadata.name"), fromField(EnvNamespace, "metadata.namespace")},
		Resources: corev1.ResourceRequirements{
			Requests: amounts("10m", "16Mi"), Limits: amounts("500m", "128Mi"),
		},
		SecurityContext: t.security(),
		VolumeMounts:    []corev1.VolumeMount{{Name: "tmp", MountPath: "/tmp"}},
	}
	for i, path := range t.Paths {
		container.VolumeMounts = append(container.VolumeMounts, corev1.VolumeMount{
			Name: volumeName(i), MountPath: path.At, ReadOnly: !path.Write, MountPropagation: path.propagation(),
		})
	}
	return container
}

func fromField(name, path string) corev1.EnvVar {
	return corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: path}}}
}

// propagation makes an unmount on the host also an unmount in the pod. Otherwise the mount in the pod keeps its device
// busy.
func (p Path) propagation() *corev1.MountPropagationMode {
	if !p.directory() {
		return nil
	}
	return new(corev1.MountPropagationHostToContainer)
}

func (t Task) security() *corev1.SecurityContext {
	security := &corev1.SecurityContext{ReadOnlyRootFilesystem: new(true), RunAsUser: new(int64(0))}
	if t.Privileged {
		security.Privileged = new(true)
		return security
	}
	security.AllowPrivilegeEscalation = new(false)
	security.Capabilities = &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}
	for _, name := range t.Capabilities {
		security.Capabilities.Add = append(security.Capabilities.Add, corev1.Capability(name))
	}
	security.SeccompProfile = &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}
	return security
}

func (t Task) volumes() []corev1.Volume {
	small := resource.MustParse("16Mi")
	volumes := []corev1.Volume{{
		Name: "tmp", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{SizeLimit: &small}},
	}}
	for i, path := range t.Paths {
		volumes = append(volumes, corev1.Volume{
			Name:         volumeName(i),
			VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: path.Host, Type: new(corev1.HostPathType(path.Type))}},
		})
	}
	return volumes
}

func volumeName(i int) string { return fmt.Sprintf("host-%d", i) }

func amounts(cpu, memory string) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory)}
}
