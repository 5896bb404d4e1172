package journal_test

import (
	"encoding"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/replicatedhq/ekco/journal"
)

var update = flag.Bool("update", false, "write the table of event types in README.md anew")

const (
	readme     = "README.md"
	tableBegin = "<!-- event types: made from Catalog() by go test ./journal -run Readme -update -->\n"
	tableEnd   = "<!-- end of event types -->"
)

func TestTheReadmeListsEveryEventType(t *testing.T) {
	content, err := os.ReadFile(readme)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(content), tableBegin)
	present, after, ok2 := strings.Cut(rest, tableEnd)
	if !ok || !ok2 {
		t.Fatal("README.md has no place for the event types")
	}
	want := catalogTable()
	if present == want {
		return
	}
	if !*update {
		t.Fatal("the table in README.md is not what the catalogue says; run: go test ./journal -run Readme -update")
	}
	if err := os.WriteFile(readme, []byte(before+tableBegin+want+tableEnd+after), 0o644); err != nil {
		t.Fatal(err)
	}
}

func catalogTable() string {
	var b strings.Builder
	b.WriteString("\n| type | v | written when | payload |\n|---|---|---|---|\n")
	for _, entry := range journal.Catalog() {
		fmt.Fprintf(&b, "| `%s` | %d | %s | %s |\n",
			entry.Type, entry.Version, entry.Meaning, members(reflect.TypeOf(entry.New()).Elem()))
	}
	b.WriteString("\n")
	return b.String()
}

// members lists a payload's JSON members; a question mark says that one can be
// absent.
func members(payload reflect.Type) string {
	var list []string
	for i := range payload.NumField() {
		field := payload.Field(i)
		if field.Anonymous {
			list = append(list, members(field.Type))
			continue
		}
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		if options != "" {
			name += "?"
		}
		list = append(list, fmt.Sprintf("`%s` %s", name, shape(field.Type)))
	}
	return strings.Join(list, ", ")
}

func shape(of reflect.Type) string {
	switch {
	case of == reflect.TypeFor[json.RawMessage]():
		return "any"
	case of.Kind() == reflect.Interface:
		return "any"
	case of.Implements(reflect.TypeFor[encoding.TextMarshaler]()) && of.Kind() == reflect.Struct:
		return "time"
	case of.Implements(reflect.TypeFor[encoding.TextMarshaler]()):
		return "duration"
	}
	switch of.Kind() {
	case reflect.Struct:
		return of.Name()
	case reflect.Slice:
		return "list of " + shape(of.Elem())
	case reflect.Map:
		return "map to " + shape(of.Elem())
	case reflect.Pointer:
		return shape(of.Elem())
	case reflect.String:
		return "text"
	case reflect.Bool:
		return "bool"
	default:
		return "number"
	}
}
