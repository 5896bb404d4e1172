package purge_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/replicatedhq/ekco/actions/purge"
	"github.com/replicatedhq/ekco/fsm"
	fsmnode "github.com/replicatedhq/ekco/fsm/node"
)

const (
	holdsHeading    = "What to do at each hold"
	refusalsHeading = "When a request is refused"
)

func TestTheDocsSayWhatToDoAtEveryHoldAndRefusal(t *testing.T) {
	holds, refusals := firstCells(t, purgePage, holdsHeading), firstCells(t, purgePage, refusalsHeading)
	policy := firstCells(t, "../../docs/operations.md", "EKCO does nothing")
	ofActions, ofPolicy := namesOfActions(t), namesIn(t, "../../fsm")
	if len(ofActions) < 10 || len(ofPolicy) < 10 {
		t.Errorf("the code has only %q and %q", ofActions, ofPolicy)
	}
	for _, name := range ofActions {
		// These only warn, and only a person's purge has them.
		onlyWarns := name == purge.NodeWasSeen || name == purge.RookManaged
		rule := slices.Contains(ofPolicy, name) // looked for below
		if !onlyWarns && !rule && !strings.Contains(holds, "`"+name+"`") {
			t.Errorf("the page of the purge does not say what to do at %s", name)
		}
	}
	for _, name := range ofPolicy {
		if !regexp.MustCompile(`\b`+name+`\b`).MatchString(policy) && !strings.Contains(refusals, "`"+name+"`") {
			t.Errorf("no page says what to do at %s", name)
		}
	}
	for _, rule := range []string{fsm.RuleSafeMode, fsmnode.RuleReadyMinimums, fsm.RuleOneAtATime} {
		if !strings.Contains(refusals, "`"+rule+"`") {
			t.Errorf("the page of the purge does not say what to do when %s refuses one", rule)
		}
	}
}

func TestEveryPreflightOfAPurgeIsAConstant(t *testing.T) {
	known := namesOfActions(t)
	node := purge.New(nil, purge.WithStorage(purge.Storage{}), purge.WithControlPlane(purge.ControlPlane{}))
	for name := range node.Preflights {
		if !slices.Contains(known, name) {
			t.Errorf("preflight %s is no constant, so that nobody compares it with the docs", name)
		}
	}
}

// namesOfActions returns those of the engine and of every action.
func namesOfActions(t *testing.T) (found []string) {
	t.Helper()
	for _, folder := range []string{"..", "../nodes", "../clear", "../purge"} {
		found = append(found, namesIn(t, folder)...)
	}
	return found
}

// namesIn returns what preflights, holds and rules of a package are called: its
// constants of no type whose values begin with a capital.
func namesIn(t *testing.T, folder string) (found []string) {
	t.Helper()
	sources, err := filepath.Glob(folder + "/*.go")
	if err != nil {
		t.Fatal(err)
	}
	name := regexp.MustCompile(`^"([A-Z][A-Za-z]+)"$`)
	for _, source := range sources {
		if strings.HasSuffix(source, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), source, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if constant, ok := n.(*ast.ValueSpec); ok && constant.Type == nil {
				for _, value := range constant.Values {
					literal, _ := value.(*ast.BasicLit)
					if literal != nil && name.MatchString(literal.Value) {
						found = append(found, name.FindStringSubmatch(literal.Value)[1])
					}
				}
			}
			return true
		})
	}
	return found
}

// firstCells returns the first cell of every row of the tables in a section.
func firstCells(t *testing.T, page, heading string) string {
	t.Helper()
	_, section, found := strings.Cut(read(t, page), "\n## "+heading+"\n")
	if !found {
		t.Fatalf("%s has no section %q", page, heading)
	}
	section, _, _ = strings.Cut(section, "\n## ")
	var cells strings.Builder
	for _, row := range regexp.MustCompile(`(?m)^\| ([^|]+) \|`).FindAllStringSubmatch(section, -1) {
		cells.WriteString(row[1] + "\n")
	}
	return cells.String()
}
