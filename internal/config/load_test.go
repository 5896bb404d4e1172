package config

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
	"golang.org/x/sys/unix"
)

// load loads a file of the given name and content, with an environment.
func load(t *testing.T, name, content string, env map[string]string, args ...string) (Config, error) {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	flags := pflag.NewFlagSet("operator", pflag.ContinueOnError)
	RegisterOperatorFlags(flags)
	if err := flags.Parse(args); err != nil {
		t.Fatal(err)
	}
	return Load(Sources{Dirs: []string{dir}, Flags: flags, Env: func(name string) (string, bool) {
		text, ok := env[name]
		return text, ok
	}})
}

func TestKURLsFileIsReadWhole(t *testing.T) {
	content, err := os.ReadFile("testdata/kurl.yaml")
	if err != nil {
		t.Fatal(err)
	}
	got, err := load(t, "config.yaml", string(content), nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(got.UnknownKeys) != 0 {
		t.Errorf("unknown keys: %v", got.UnknownKeys)
	}
	want := Default()
	want.File = got.File
	want.NodeUnreachableToleration = 5 * time.Minute
	want.RookStorageNodes = "- name: a\n  devices: \"x\""
	want.MaintainRookStorageNodes = true
	want.ReconcileRookMDSPlacement, want.ReconcileCephCSIResources = true, true
	want.CephObjectStore = "rook-ceph-store"
	want.RotateCertsImage, want.HostTaskImage = "replicated/ekco:v0.28.14", "replicated/ekco:v0.28.14"
	want.KotsadmKubeletCertSecret = "kubelet-client-cert"
	want.RookPriorityClass = ""
	want.InternalLoadBalancerHAProxyImage = "haproxy:3.4.2-alpine3.24"
	want.PodImageOverrides = []ImageOverride{{"a.example/x:1", "b.example/x:1"}, {"nginx", "b.example/nginx@sha256:00"}}
	want.AutoApproveKubeletCSRs = true
	want.MinioUtilImage = "replicated/kurl-util:v1"
	want.StorageMigrationAuthToken = "0123456789abcdef"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestWithoutAFileTheDefaultsOfTheOperatorHold(t *testing.T) {
	got, err := Load(Sources{Dirs: []string{t.TempDir()}, Env: func(string) (string, bool) { return "", false }})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(Default(), got); diff != "" {
		t.Error(diff)
	}
}

func TestAFlagWinsOverTheEnvironmentAndThatOverTheFile(t *testing.T) {
	const file = "min_ready_master_nodes: 3\nmin_ready_worker_nodes: 3\nceph_block_pool: file\nlog_level: warn\n"
	env := map[string]string{"MIN_READY_WORKER_NODES": "4", "CEPH_BLOCK_POOL": "env", "LOG_LEVEL": ""}
	got, err := load(t, "config.yaml", file, env, "--ceph_block_pool=flag", "--dry_run", "--clear_dead_nodes=false")
	if err != nil {
		t.Fatal(err)
	}
	if got.MinReadyMasterNodes != 3 || got.MinReadyWorkerNodes != 4 || got.CephBlockPool != "flag" {
		t.Errorf("got %d, %d, %q, want 3 (file), 4 (environment), flag", got.MinReadyMasterNodes, got.MinReadyWorkerNodes, got.CephBlockPool)
	}
	want := []string{"ceph_block_pool", "clear_dead_nodes", "dry_run", "min_ready_worker_nodes"}
	if diff := cmp.Diff(want, got.Explicit); diff != "" {
		t.Errorf("set by flag or environment: %s", diff)
	}
	if got.LogLevel != "warn" {
		t.Errorf("an empty variable hid the file: log_level is %q", got.LogLevel)
	}
	if !got.DryRun || got.ClearDeadNodes {
		t.Errorf("dry_run %v and clear_dead_nodes %v, want true and false", got.DryRun, got.ClearDeadNodes)
	}
}

func TestAFlagSavesFromAnEnvironmentThatMakesNoSense(t *testing.T) {
	env := map[string]string{"RECONCILE_INTERVAL": "soon"}
	if _, err := load(t, "config.yaml", "", env); err == nil || !strings.Contains(err.Error(), "environment variable RECONCILE_INTERVAL") {
		t.Errorf("got %v, want an error that names the variable", err)
	}
	if _, err := load(t, "config.yaml", "", env, "--reconcile_interval=1m"); err != nil {
		t.Errorf("got %v although the flag wins", err)
	}
}

func TestDependentDefaults(t *testing.T) {
	for _, test := range []struct {
		name, file string
		clear      time.Duration
		contour    string
		timeout    time.Duration
	}{
		{"nothing set", "", 5 * time.Minute, "projectcontour", 15 * time.Minute},
		{"a short toleration", "node_unreachable_toleration: 90s", 90 * time.Second, "projectcontour", 15 * time.Minute},
		{"a long toleration", "node_unreachable_toleration: 24h", 5 * time.Minute, "projectcontour", 15 * time.Minute},
		{"clear_after set", "node_unreachable_toleration: 90s\nclear_after: 10m", 10 * time.Minute, "projectcontour", 15 * time.Minute},
		{"the old name for Contour", "contour_cert_namespace: a", 5 * time.Minute, "a", 15 * time.Minute},
		{"both names for Contour", "contour_cert_namespace: a\ncontour_namespace: b", 5 * time.Minute, "b", 15 * time.Minute},
		{"reconcile_timeout 0", "reconcile_timeout: 0", 5 * time.Minute, "projectcontour", 15 * time.Minute},
		{"reconcile_timeout set", "reconcile_timeout: 3m", 5 * time.Minute, "projectcontour", 3 * time.Minute},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := load(t, "config.yaml", test.file, nil)
			if err != nil {
				t.Fatal(err)
			}
			if got.ClearAfter != test.clear || got.ContourNamespace != test.contour || got.ReconcileTimeout != test.timeout {
				t.Errorf("got %s, %s, %s, want %s, %s, %s", got.ClearAfter, got.ContourNamespace, got.ReconcileTimeout,
					test.clear, test.contour, test.timeout)
			}
		})
	}
}

func TestABadValueIsNamedWithWhereItIsAndWhatIsExpected(t *testing.T) {
	for _, test := range []struct {
		line string
		want []string
	}{
		{"min_ready_master_nodes: 0", []string{`min_ready_master_nodes is "0"`, "config.yaml line 2", "at least 1"}},
		{"min_ready_master_nodes: many", []string{`"many"`, "at least 1"}},
		{"min_ready_worker_nodes: -1", []string{`"-1"`, "at least 0"}},
		{"min_ready_worker_nodes: 1.5", []string{`"1.5"`, "whole number"}},
		{"clear_dead_nodes: perhaps", []string{"true or false"}},
		{"clear_dead_nodes: {a: b}", []string{"clear_dead_nodes is a structure", "plain value"}},
		{"node_unreachable_toleration: 5", []string{`"5"`, "like 5m"}},
		{"contour_namespace: Bad_NS", []string{"contour_namespace", `"Bad_NS"`, "the name of a namespace"}},
		{"minio_namespace: a/b", []string{"minio_namespace", `"a/b"`, "the name of a namespace"}},
		{"node_unreachable_toleration: 0s", []string{`"0s"`, "above zero"}},
		{"minio_heal_settle_time: 999ms", []string{`"999ms"`, "at least 1s"}},
		{"internal_load_balancer_trial: 9s", []string{`internal_load_balancer_trial is "9s"`, "config.yaml line 2", "10s to 3m"}},
		{"internal_load_balancer_trial: 3m1s", []string{`internal_load_balancer_trial is "3m1s"`, "config.yaml line 2", "10s to 3m"}},
		{"kotsadm_ready_timeout: 0s", []string{`"0s"`, "at least 1s"}},
		{"settling_time: -3s", []string{`"-3s"`, "duration"}},
		{"max_unknown_nodes: 101%", []string{"0% to 100%"}},
		{"max_unknown_nodes: -2", []string{"0% to 100%"}},
		{"pod_image_overrides: a=b,c", []string{`"c"`}},
		{"pod_image_overrides: a=b=c", []string{"exactly one ="}},
		{"log_level: loud", []string{"debug, info, warn, error"}},
		{"listen_address: 8080", []string{":8080"}},
		{"rook_storage_nodes_label: x", []string{"key=value"}},
		{"internal_load_balancer_port: 70000", []string{"65535"}},
		{`journal: ""`, []string{"not empty"}},
		{"journal_max_size: big", []string{`"big"`, "like 512Mi"}},
		{"journal_max_size: -1Gi", []string{"like 512Mi"}},
		{"journal_max_size: 9999999999Ti", []string{"like 512Mi"}},
		{"journal_max_size: 512", []string{"at least 16Mi"}},
	} {
		t.Run(test.line, func(t *testing.T) {
			_, err := load(t, "config.yaml", "# first line\n"+test.line+"\n", nil)
			if !errors.Is(err, ErrInvalid) {
				t.Fatalf("got %v, want ErrInvalid", err)
			}
			for _, want := range test.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q does not say %q", err, want)
				}
			}
		})
	}
}

func TestATrialOfHAProxyMayTakeTenSecondsToThreeMinutes(t *testing.T) {
	for _, text := range []string{"10s", "3m"} {
		if _, err := load(t, "config.yaml", "internal_load_balancer_trial: "+text+"\n", nil); err != nil {
			t.Error(err)
		}
	}
}

func TestASizeIsReadAndWrittenWithItsUnit(t *testing.T) {
	for text, want := range map[string]Bytes{
		"512Mi": 512 << 20, "2Gi": 2 << 30, "16777217": 16<<20 + 1, "0": 0, "1Ti": 1 << 40, "20480Ki": 20 << 20,
	} {
		got, err := load(t, "config.yaml", "journal_max_size: "+text+"\n", nil)
		if err != nil || got.JournalMaxSize != want {
			t.Errorf("%s is read as %d (%v), want %d", text, got.JournalMaxSize, err, want)
		}
		if again, err := parseBytes(got.JournalMaxSize.String()); err != nil || again != want {
			t.Errorf("%s is written as %s", text, got.JournalMaxSize)
		}
	}
}

func TestAllProblemsAreReportedAtOnce(t *testing.T) {
	_, err := load(t, "config.yaml", "rotate_certs: 7\n", map[string]string{"CLEAR_AFTER": "x"}, "--min_ready_master_nodes=0")
	if err == nil {
		t.Fatal("got no error")
	}
	for _, want := range []string{"rotate_certs", "config.yaml line 1", "environment variable CLEAR_AFTER", "flag --min_ready_master_nodes"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q does not say %q", err, want)
		}
	}
}

func TestASecretIsNeverShown(t *testing.T) {
	const secret = "s3cr3t-s3cr3t"
	_, err := load(t, "config.yaml", "storage_migration_auth_token: {"+secret+": 1}\n", nil)
	if err == nil || strings.Contains(err.Error(), secret) {
		t.Errorf("got %v, want an error without the secret", err)
	}
	config := Default()
	config.StorageMigrationAuthToken = secret
	for key, text := range config.Redacted() {
		if strings.Contains(text, secret) {
			t.Errorf("%s shows the secret", key)
		}
	}
	if got := config.Redacted()["storage_migration_auth_token"]; got != "(set)" {
		t.Errorf("the secret is shown as %q, want (set)", got)
	}
}

func TestUnknownKeysAreListedAndIgnored(t *testing.T) {
	got, err := load(t, "config.yaml", "zeta: {a: 1}\nalpha: 1\nlog_level: debug\n", nil)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"alpha", "zeta"}, got.UnknownKeys); diff != "" || got.LogLevel != "debug" {
		t.Errorf("%s; log_level %q", diff, got.LogLevel)
	}
}

func TestABrokenFileIsNamedWithItsLine(t *testing.T) {
	for name, test := range map[string]struct{ content, want string }{
		"config.yaml": {"a: 1\nb: c: d\n", "near line 2"},
		"config.json": {"{\"a\": 1,\n \"a\": 2}", "line 2: key a is set already in line 1"},
		"config.toml": {"a = 1\nb = \n", "line 2"},
		"config.yml":  {"- a\n", "line 1: want keys"},
	} {
		_, err := load(t, name, test.content, nil)
		if !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), name) || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got %v, want an error that names the file and %q", name, err, test.want)
		}
	}
}

func TestEveryKindOfFileIsRead(t *testing.T) {
	for name, content := range map[string]string{
		"config.yaml": "Purge_Dead_Nodes: \"true\"\npod_image_overrides: [a=b]\n",
		"config.yml":  "purge_dead_nodes: true\npod_image_overrides: a=b\n",
		"config.json": `{"purge_dead_nodes": true, "pod_image_overrides": ["a=b"]}`,
		"config.toml": "purge_dead_nodes = true\npod_image_overrides = ['a=b']\n",
	} {
		got, err := load(t, name, content, nil)
		if err != nil || !got.PurgeDeadNodes || len(got.PodImageOverrides) != 1 {
			t.Errorf("%s: got %v, %v, %v", name, got.PurgeDeadNodes, got.PodImageOverrides, err)
		}
	}
}

func TestAFileThatIsNamedMustExist(t *testing.T) {
	_, err := Load(Sources{File: filepath.Join(t.TempDir(), "mine.yaml")})
	if !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v, want that it does not exist", err)
	}
}

func TestTheFirstDirectoryWithAFileCounts(t *testing.T) {
	first, second := t.TempDir(), t.TempDir()
	for dir, content := range map[string]string{first: "log_level: warn", second: "log_level: debug"} {
		if err := os.WriteFile(filepath.Join(dir, "config.yaml"), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got, err := Load(Sources{Dirs: []string{t.TempDir(), first, second}, Env: func(string) (string, bool) { return "", false }})
	if err != nil || got.LogLevel != "warn" {
		t.Errorf("got %q, %v, want warn", got.LogLevel, err)
	}
}

// asNobody takes the rights of root, if there are any, from the test until its
// end: of its thread, and only as far as files go.
func asNobody(t *testing.T) {
	t.Helper()
	if os.Getuid() != 0 {
		return
	}
	const nobody = 65534
	runtime.LockOSThread()
	if _, err := unix.SetfsuidRetUid(nobody); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := unix.SetfsuidRetUid(0); err != nil {
			t.Error(err)
			return
		}
		runtime.UnlockOSThread()
	})
}

func TestADirectoryThatMayNotBeSearchedIsPassedOver(t *testing.T) {
	root := t.TempDir()
	locked, open := filepath.Join(root, "locked"), filepath.Join(root, "open")
	err := errors.Join(
		os.Chmod(filepath.Dir(root), 0o755), os.Mkdir(locked, 0o000), os.Mkdir(open, 0o755),
		os.WriteFile(filepath.Join(open, "config.yaml"), []byte("log_level: warn"), 0o644),
	)
	if err != nil {
		t.Fatal(err)
	}
	asNobody(t)
	got, err := Load(Sources{Dirs: []string{locked, open}, Env: func(string) (string, bool) { return "", false }})
	if err != nil || got.LogLevel != "warn" {
		t.Errorf("got %q, %v, want warn", got.LogLevel, err)
	}
	if _, err := Load(Sources{File: filepath.Join(locked, "config.yaml")}); !errors.Is(err, os.ErrPermission) {
		t.Errorf("got %v for a file that is named, want that it may not be read", err)
	}
}

func TestAFileThatIsFoundAndMayNotBeReadIsAnError(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "config.yaml")
	err := errors.Join(os.Chmod(filepath.Dir(dir), 0o755), os.WriteFile(path, nil, 0o000))
	if err != nil {
		t.Fatal(err)
	}
	asNobody(t)
	if _, err := Load(Sources{Dirs: []string{dir}}); !errors.Is(err, os.ErrPermission) || !strings.Contains(err.Error(), path) {
		t.Errorf("got %v, want that %s may not be read", err, path)
	}
}

func TestOnlyTheKeysAskedForAreJudged(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(path, []byte("min_ready_master_nodes: 0\njournal: /j/here.db\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := Load(Sources{File: path, Only: []string{"journal"}})
	if err != nil || got.Journal != "/j/here.db" || got.Socket() != "/j/here.sock" {
		t.Errorf("got %q, %q, %v", got.Journal, got.Socket(), err)
	}
}

func TestEveryKeyHasAFlagWhoseDefaultReadsBack(t *testing.T) {
	flags := pflag.NewFlagSet("operator", pflag.ContinueOnError)
	RegisterOperatorFlags(flags)
	for _, name := range Keys() {
		flag := flags.Lookup(name)
		if flag == nil {
			t.Errorf("%s has no flag", name)
			continue
		}
		config := Default()
		if err := config.keysByName()[name].read(flag.DefValue); err != nil {
			t.Errorf("%s: default %q: %v", name, flag.DefValue, err)
		}
		if diff := cmp.Diff(Default(), config); diff != "" {
			t.Errorf("%s: default does not read back: %s", name, diff)
		}
	}
}

func TestNoTwoKeysShareAField(t *testing.T) {
	seen := make(map[any]string)
	for _, k := range new(Config).keys() {
		if other, twice := seen[k.value]; twice {
			t.Errorf("%s and %s share a field", k.name, other)
		}
		seen[k.value] = k.name
	}
}

func TestEverySettingHasAKeyAndAFieldOfItsOwn(t *testing.T) {
	var config Config
	keyed, named, fields := make(map[any]bool), make(map[string]bool), make(map[string]bool)
	for _, k := range config.keys() {
		if named[k.name] {
			t.Errorf("two keys are called %s", k.name)
		}
		keyed[k.value], named[k.name] = true, true
	}
	for _, s := range config.sections() {
		section := reflect.ValueOf(s).Elem()
		for i := range section.NumField() {
			field := section.Type().Field(i)
			if !keyed[section.Field(i).Addr().Interface()] {
				t.Errorf("no key sets %s.%s", section.Type(), field.Name)
			}
			if fields[field.Name] {
				t.Errorf("two sections have a field %s", field.Name)
			}
			fields[field.Name] = true
		}
	}
}

func FuzzTheReader(f *testing.F) {
	kurl, err := os.ReadFile("testdata/kurl.yaml")
	if err != nil {
		f.Fatal(err)
	}
	f.Add("config.yaml", string(kurl))
	f.Add("config.toml", "journal = 'x'\n[a]\nb = 1\n")
	f.Add("config.yaml", "a: &x [*x]\njournal: *x\n")
	f.Add("config.json", "{}")
	f.Fuzz(func(t *testing.T, name, content string) {
		settings, err := parseFile(filepath.Base(name), []byte(content))
		if err != nil {
			return
		}
		config := Default()
		set, problems := config.apply(settings, func(string) bool { return true })
		config.settle(set)
		if len(problems) > 0 {
			return
		}
		again := Default()
		byName := again.keysByName()
		for _, k := range config.keys() {
			if err := byName[k.name].read(format(k.value)); err != nil && set[k.name] {
				t.Errorf("%s was read and does not read back: %v", k.name, err)
			}
		}
		if config.MinReadyMasterNodes < 1 {
			t.Error("a policy without a primary was let through")
		}
	})
}

func TestTheJournalHasAVariableOfItsOwn(t *testing.T) {
	for want, set := range map[string]map[string]string{
		"/one": {"EKCO_JOURNAL": "/one"}, "/two": {"EKCO_JOURNAL": "/two", "JOURNAL": "/three"}, "/four": {"EKCO_JOURNAL": "", "JOURNAL": "/four"},
	} {
		got, err := Load(Sources{Env: func(name string) (string, bool) { text, is := set[name]; return text, is }})
		if err != nil || got.Journal != want {
			t.Errorf("%v: the journal is %q, %v", set, got.Journal, err)
		}
	}
}
