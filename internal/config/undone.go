package config

import (
	"cmp"
	"fmt"
	"reflect"
	"strings"
)

// Undone returns a sentence that lists the features, with their keys, that are switched on but that this version lacks.
// It returns "" if there are none.
func (c Config) Undone() string {
	var undone []string
	for _, k := range c.keys() {
		if does := cmp.Or(k.does, k.lacks); does != "" && k.switchedOn() {
			undone = append(undone, fmt.Sprintf("%s (%s)", does, k.name))
		}
	}
	if len(undone) == 0 {
		return ""
	}
	return "this version cannot yet " + inWords(undone)
}

// switchedOn reports whether the value switches the setting's effect on.
func (k key) switchedOn() bool {
	if k.on != nil {
		return k.on()
	}
	return !reflect.ValueOf(k.value).Elem().IsZero()
}

// inWords returns "a, b or c".
func inWords(items []string) string {
	last := len(items) - 1
	if last == 0 {
		return items[0]
	}
	return strings.Join(items[:last], ", ") + " or " + items[last]
}
