package config

import (
	"fmt"
	"strings"
)

// alwaysOffBelow is what rook_minimum_node_count must be above to switch
// anything on.
const alwaysOffBelow = 3

// Undone says in one sentence what is switched on and not done by this EKCO,
// with the settings that ask for it. It is empty when there is nothing.
func (c Config) Undone() string {
	var undone []string
	for _, k := range keys {
		if k.does != "" && switchedOn(k.field(&c)) {
			undone = append(undone, fmt.Sprintf("%s (%s)", k.does, k.name))
		}
	}
	if len(undone) == 0 {
		return ""
	}
	return "this version does not yet do all that is switched on: it does not " + inWords(undone)
}

// switchedOn reports whether a value switches on what its setting is about.
func switchedOn(field any) bool {
	switch value := field.(type) {
	case *bool:
		return *value
	case *int:
		return *value >= alwaysOffBelow
	case *string:
		return *value != ""
	case *[]ImageOverride:
		return len(*value) > 0
	}
	return false
}

// inWords returns "a, b or c".
func inWords(items []string) string {
	last := len(items) - 1
	if last == 0 {
		return items[0]
	}
	return strings.Join(items[:last], ", ") + " or " + items[last]
}
