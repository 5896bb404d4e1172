package hosttask

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/google/go-cmp/cmp"

	"github.com/replicatedhq/ekco/journal"
)

var (
	look = Task{
		Name: "node-report", Node: "w1", NodeUID: "u", Image: "replicated/ekco:v1", Args: []string{"report", "--all"},
		Paths: []Path{{Host: "/etc/kubernetes", At: "/host/etc/kubernetes", Type: "Directory"}, {Host: "/etc/haproxy", At: "/host/etc/haproxy", Write: true}},
		Limit: journal.Duration(time.Minute),
	}
	owner = Owner{Action: "a-1", Step: "report w1"}
)

func made(t *testing.T, task Task) *corev1.Pod {
	t.Helper()
	raw, err := task.pod("kurl", owner)
	if err != nil {
		t.Fatal(err)
	}
	var pod corev1.Pod
	if err := json.Unmarshal(raw, &pod); err != nil {
		t.Fatal(err)
	}
	return &pod
}

func TestAPodHasNothingOfTheHostButWhatItsTaskSays(t *testing.T) {
	pod := made(t, look)
	spec, container := pod.Spec, pod.Spec.Containers[0]
	if *spec.AutomountServiceAccountToken || spec.HostNetwork || spec.HostPID || spec.HostIPC || spec.ServiceAccountName != "" {
		t.Errorf("it has more than it needs: %+v", spec)
	}
	if *spec.EnableServiceLinks || *spec.TerminationGracePeriodSeconds != 5 || container.Resources.Limits.Memory().IsZero() || container.Resources.Limits.Cpu().IsZero() ||
		spec.Volumes[0].EmptyDir.SizeLimit.IsZero() {
		t.Errorf("it has no limits: %+v", spec)
	}
	security := container.SecurityContext
	if !*security.ReadOnlyRootFilesystem || *security.AllowPrivilegeEscalation || security.Privileged != nil ||
		!cmp.Equal(security.Capabilities.Drop, []corev1.Capability{"ALL"}) || len(security.Capabilities.Add) > 0 || security.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault {
		t.Errorf("it may do more than it needs: %+v", security)
	}
	mounts := map[string]bool{}
	for _, mount := range container.VolumeMounts {
		mounts[mount.MountPath] = mount.ReadOnly
	}
	if want := map[string]bool{"/tmp": false, "/host/etc/kubernetes": true, "/host/etc/haproxy": false}; !cmp.Equal(mounts, want) {
		t.Errorf("it has %v, want %v", mounts, want)
	}
	paths := map[string]string{}
	for _, volume := range spec.Volumes {
		if volume.HostPath != nil {
			paths[volume.HostPath.Path] = string(*volume.HostPath.Type)
		}
	}
	if want := map[string]string{"/etc/kubernetes": "Directory", "/etc/haproxy": ""}; !cmp.Equal(paths, want) {
		t.Errorf("it has of the host %v, want %v", paths, want)
	}
}

// TestWhatIsUnmountedOnTheHostIsUnmountedInThePod: it would keep its device busy.
func TestWhatIsUnmountedOnTheHostIsUnmountedInThePod(t *testing.T) {
	task := look
	task.Paths = []Path{{At: "/a", Type: "Directory"}, {At: "/b", Type: "DirectoryOrCreate"}, {At: "/c", Type: "File"}, {At: "/d"}}
	got := map[string]corev1.MountPropagationMode{}
	for _, mount := range made(t, task).Spec.Containers[0].VolumeMounts {
		if mount.MountPropagation != nil {
			got[mount.MountPath] = *mount.MountPropagation
		}
	}
	if want := map[string]corev1.MountPropagationMode{"/a": "HostToContainer", "/b": "HostToContainer"}; !cmp.Equal(got, want) {
		t.Errorf("it has %v, want %v", got, want)
	}
}

func TestAPodRunsOnceOnItsNodeWhateverTaintsThatHas(t *testing.T) {
	pod := made(t, look)
	spec := pod.Spec
	if spec.NodeName != "w1" || spec.RestartPolicy != corev1.RestartPolicyNever || *spec.ActiveDeadlineSeconds != 30+60 {
		t.Errorf("it is on %s, %s, %d s", spec.NodeName, spec.RestartPolicy, *spec.ActiveDeadlineSeconds)
	}
	if want := []corev1.Toleration{{Operator: corev1.TolerationOpExists}}; !cmp.Equal(spec.Tolerations, want) {
		t.Errorf("it tolerates %v", spec.Tolerations)
	}
	if container := spec.Containers[0]; container.Image != look.Image || container.ImagePullPolicy != corev1.PullIfNotPresent ||
		!cmp.Equal(container.Command, []string{"/usr/bin/ekco"}) || !cmp.Equal(container.Args, look.Args) ||
		!cmp.Equal(container.Env[0], corev1.EnvVar{Name: "HOSTNAME", Value: "w1"}) {
		t.Errorf("it runs %+v", container)
	}
	for i, path := range map[int]string{1: "metadata.name", 2: "metadata.namespace"} {
		if from := spec.Containers[0].Env[i].ValueFrom; from == nil || from.FieldRef.FieldPath != path {
			t.Errorf("its environment is %+v", spec.Containers[0].Env)
		}
	}
	if pod.Labels["app"] != "" {
		t.Error("it has the label by which installers know EKCO's own pod")
	}
}

func TestOnlyATaskThatAsksForItIsPrivileged(t *testing.T) {
	task := look
	task.Privileged = true
	security := made(t, task).Spec.Containers[0].SecurityContext
	if security.Privileged == nil || !*security.Privileged || !*security.ReadOnlyRootFilesystem || security.AllowPrivilegeEscalation != nil {
		t.Errorf("it is %+v", security)
	}
}

func TestAPodsNameIsThatOfItsStepAndFits(t *testing.T) {
	long := Owner{Action: strings.Repeat("a", 300), Step: strings.Repeat("b", 300)}
	names := map[string]bool{}
	for _, o := range []Owner{owner, {"a-1", "report w2"}, {"a-2", "report w1"}, long, {"a", "-1 report w1"}, {"a-", "1 report w1"}} {
		name := look.PodName(o)
		if names[name] || len(name) > 63 {
			t.Errorf("%q is taken, or too long", name)
		}
		names[name] = true
	}
	if look.PodName(owner) != look.PodName(Owner{"a-1", "report w1"}) {
		t.Error("it has two names")
	}
}

func pod(phase corev1.PodPhase, change func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{Status: corev1.PodStatus{Phase: phase}}
	if change != nil {
		change(p)
	}
	return p
}

func inContainer(state corev1.ContainerState) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "task", State: state}}
	}
}

var killed = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 137, Reason: "OOMKilled"}}

func tooLate(p *corev1.Pod) { p.Status.Reason, p.Status.Message = "DeadlineExceeded", "so" }

func waitsFor(reason string) func(*corev1.Pod) {
	return inContainer(corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: "so"}})
}

func TestWhatAPodShowsSaysHowFarItsTaskIs(t *testing.T) {
	for name, test := range map[string]struct {
		pod   *corev1.Pod
		age   time.Duration
		state State
		why   string
	}{
		"new":                   {pod("", nil), 0, Starting, "its pod starts"},
		"being created":         {pod(corev1.PodPending, waitsFor("ContainerCreating")), 29 * time.Second, Starting, "its pod starts: ContainerCreating"},
		"not started":           {pod(corev1.PodPending, waitsFor("ContainerCreating")), 31 * time.Second, Lost, "its pod has not started on node w1 within 30s: ContainerCreating"},
		"without an image":      {pod(corev1.PodPending, waitsFor("ErrImagePull")), 0, Lost, "its pod cannot start on node w1: ErrImagePull: so"},
		"never an image":        {pod(corev1.PodPending, waitsFor("ErrImageNeverPull")), 0, Lost, "its pod cannot start on node w1: ErrImageNeverPull: so"},
		"running":               {pod(corev1.PodRunning, nil), 100 * time.Second, Running, ""},
		"overdue":               {pod(corev1.PodRunning, nil), 106 * time.Second, Lost, "its pod still runs, 16s after its time was over: check the kubelet of node w1"},
		"too late":              {pod(corev1.PodFailed, tooLate), 0, Lost, "its pod failed: DeadlineExceeded: so"},
		"out of memory":         {pod(corev1.PodFailed, inContainer(killed)), 0, Lost, "its pod failed: its program ended with 137 (OOMKilled)"},
		"failed without a word": {pod(corev1.PodFailed, nil), 0, Lost, "its pod failed: the kubelet reports no reason"},
		"deleted":               {pod(corev1.PodRunning, func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{} }), 0, Lost, "its pod was deleted"},
	} {
		t.Run(name, func(t *testing.T) {
			seen, ended := look.stateOf(test.pod, test.age)
			if seen.State != test.state || seen.Why != test.why || ended {
				t.Errorf("it is %s (%s), want %s (%s)", seen.State, seen.Why, test.state, test.why)
			}
		})
	}
	for _, reason := range []string{"InvalidImageName", "CreateContainerError", "RunContainerError", "CrashLoopBackOff"} {
		if seen, _ := look.stateOf(pod(corev1.PodPending, waitsFor(reason)), 0); seen.State != Lost {
			t.Errorf("one that waits for %s is %s", reason, seen.State)
		}
	}
	if _, ended := look.stateOf(pod(corev1.PodSucceeded, func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{} }), time.Hour); !ended {
		t.Error("what has succeeded does not count as ended")
	}
}

// TestATrialWhoseEndIsNotReportedIsWorse: its change may have cut off the node. It has changed nothing before it
// starts.
func TestATrialWhoseEndIsNotReportedIsWorse(t *testing.T) {
	for phase, worse := range map[corev1.PodPhase]bool{corev1.PodRunning: true, corev1.PodPending: false, corev1.PodFailed: false} {
		for _, trial := range []bool{true, false} {
			task := look
			task.Trial, task.LosesNode = trial, true
			if seen, _ := task.stateOf(pod(phase, nil), time.Hour); seen.State != Lost || seen.Worse != (worse && trial) {
				t.Errorf("%s, trial %v: it is %+v", phase, trial, seen)
			}
		}
	}
}

func TestWhatAProgramSaysIsReadAsItSaidIt(t *testing.T) {
	type result struct{ Kernel string }
	say := func(result any, failed error) string {
		var out strings.Builder
		if err := Say(&out, result, failed); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	got, err := outcomeOf("a line\n" + say(result{"<6.1>\n\"x\""}, nil))
	if want := `{"Kernel":"\u003c6.1\u003e\n\"x\""}`; err != nil || got.Failed != "" || string(got.Result) != want {
		t.Errorf("it is %+v, %v, want %s", got, err, want)
	}
	got, err = outcomeOf(say(nil, errors.New("no disk")))
	if err != nil || got.Failed != "no disk" || got.Result != nil {
		t.Errorf("a failure is %+v, %v", got, err)
	}
	for name, outcome := range map[string]string{
		"a large result": say(strings.Repeat("x", maxOutcome), nil), "a result that cannot be written": say(make(chan int), nil),
		"a long reason": say(nil, errors.New(strings.Repeat("é", maxOutcome))),
	} {
		got, err = outcomeOf(outcome)
		if err != nil || got.Failed == "" || len(outcome) > maxOutcome {
			t.Errorf("%s is %+v, %v, of %d bytes", name, got, err, len(outcome))
		}
	}
	if got, err = outcomeOf(say("first", nil) + say("last", nil) + "a line of the other output\n"); err != nil || string(got.Result) != `"last"` {
		t.Errorf("it is %+v, %v", got, err)
	}
	large := `ekco-outcome {"result":"` + strings.Repeat("x", MaxResult-1) + `"}` // by who said it in another way
	for _, log := range []string{"", "bye\n", "ekco-outcome {\n", "it says ekco-outcome {}\n", large} {
		if _, err := outcomeOf(log); err == nil {
			t.Errorf("%q passes for an outcome", log)
		}
	}
}

// TestASweepKnowsATasksTimesFromItsPod: also those of a pod whose deadline says nothing.
func TestASweepKnowsATasksTimesFromItsPod(t *testing.T) {
	task := look
	task.Start = journal.Duration(50 * time.Second)
	for _, task := range []Task{look, task} {
		if got := taskOf(made(t, task)); got.start() != task.start() || got.limit() != task.limit() || got.Node != "w1" || got.Name != task.Name {
			t.Errorf("it is %+v, want %+v", got, task)
		}
	}
	short := made(t, task)
	short.Spec.ActiveDeadlineSeconds = new(int64(10))
	if got := taskOf(short); got.limit() != 2*time.Minute || got.start() != 50*time.Second {
		t.Errorf("it may start within %s and run for %s", got.start(), got.limit())
	}
}

func TestATaskHasTheCapabilitiesItNames(t *testing.T) {
	task := look
	task.Capabilities = []string{"CHOWN"}
	security := made(t, task).Spec.Containers[0].SecurityContext
	if !cmp.Equal(security.Capabilities.Drop, []corev1.Capability{"ALL"}) || !cmp.Equal(security.Capabilities.Add, []corev1.Capability{"CHOWN"}) ||
		*security.AllowPrivilegeEscalation || security.Privileged != nil {
		t.Errorf("it is %+v", security)
	}
}

func TestAnotherImageRunsAfterEKCOsInItsOwnWords(t *testing.T) {
	task := look
	task.Then = &Program{Image: "haproxy:1", Command: []string{"haproxy", "-c"}}
	task.Grace = journal.Duration(time.Minute)
	spec := made(t, task).Spec
	if len(spec.InitContainers) != 1 || len(spec.Containers) != 1 {
		t.Fatalf("it is %+v", spec)
	}
	first, then := spec.InitContainers[0], spec.Containers[0]
	if first.Image != look.Image || !cmp.Equal(first.Args, look.Args) || first.Name == then.Name {
		t.Errorf("at first it runs %+v", first)
	}
	if then.Image != "haproxy:1" || !cmp.Equal(then.Command, []string{"haproxy", "-c"}) || len(then.Args) > 0 {
		t.Errorf("then it runs %+v", then)
	}
	if !cmp.Equal(first.VolumeMounts, then.VolumeMounts) || !cmp.Equal(first.SecurityContext, then.SecurityContext) {
		t.Errorf("they have %+v and %+v", first, then)
	}
	if grace := *spec.TerminationGracePeriodSeconds; grace != 60 {
		t.Errorf("it has %d s to end", grace)
	}
}

// inBoth has EKCO's program in one state, and that of another image in another.
func inBoth(first, then corev1.ContainerState) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: "prepare", State: first}}
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "task", State: then}}
	}
}

func TestOfTwoProgramsTheOneThatFailsIsNamed(t *testing.T) {
	waits := func(reason string) corev1.ContainerState {
		return corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: "so"}}
	}
	done := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}
	for name, test := range map[string]struct {
		pod   *corev1.Pod
		state State
		why   string
	}{
		"EKCO's has no image":      {pod(corev1.PodPending, inBoth(waits("ErrImagePull"), waits("PodInitializing"))), Lost, "its pod cannot start on node w1: ErrImagePull: so"},
		"the other has no image":   {pod(corev1.PodPending, inBoth(done, waits("ErrImagePull"))), Lost, "its pod cannot start on node w1: ErrImagePull: so"},
		"EKCO's runs":              {pod(corev1.PodPending, inBoth(corev1.ContainerState{}, waits("PodInitializing"))), Starting, "its pod starts: PodInitializing"},
		"EKCO's was out of memory": {pod(corev1.PodFailed, inBoth(killed, waits("PodInitializing"))), Lost, "its pod failed: its program ended with 137 (OOMKilled)"},
		"the other has failed":     {pod(corev1.PodFailed, inBoth(done, killed)), Lost, "its pod failed: its program ended with 137 (OOMKilled)"},
	} {
		t.Run(name, func(t *testing.T) {
			if seen, _ := look.stateOf(test.pod, 0); seen.State != test.state || seen.Why != test.why {
				t.Errorf("it is %s (%s), want %s (%s)", seen.State, seen.Why, test.state, test.why)
			}
		})
	}
}
