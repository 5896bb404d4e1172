package config

import (
	"fmt"
	"reflect"
)

// key is one setting: its name, the place of its value, and the check of the value.
type key struct {
	name string
	// value points to the value in the key's [Config]. Its type decides how text is parsed; see [ownType] for types
	// other than Go's.
	value any
	// byDefault is the default in the form of the file; empty for the zero value.
	byDefault string
	help      string
	// check returns what is expected of a value, or "" if it is valid.
	check  func(any) string
	secret bool
	// built is set if the setting has an effect in this version.
	built bool
	// does completes the sentence "this version cannot yet …" with what the setting makes EKCO do. It is empty if built
	// is set, or if the setting switches nothing on.
	does string
	// lacks is like does, for a part of what a setting with built makes EKCO do.
	lacks string
	// on reports whether the value switches on what does or lacks describes. nil means that every value except the zero
	// value does so.
	on func() bool
}

// section is the settings of one capability: a struct that [Config] embeds.
type section interface {
	// keys returns the keys of the section, in the order of the documentation.
	keys() []key
}

// settler is a section in which the default of a setting depends on other settings.
type settler interface {
	// settle sets these defaults, except for the keys in set, which the user has given.
	settle(set map[string]bool)
}

// sections returns the embedded structs, in their order.
func (c *Config) sections() []section {
	var sections []section
	fields := reflect.ValueOf(c).Elem()
	for i := range fields.NumField() {
		if fields.Type().Field(i).Anonymous {
			sections = append(sections, fields.Field(i).Addr().Interface().(section))
		}
	}
	return sections
}

// keys returns every setting of this configuration, in the order of the documentation.
func (c *Config) keys() []key {
	var keys []key
	for _, s := range c.sections() {
		keys = append(keys, s.keys()...)
	}
	return keys
}

// settle sets the defaults that depend on other settings.
func (c *Config) settle(set map[string]bool) {
	for _, s := range c.sections() {
		if s, depends := s.(settler); depends {
			s.settle(set)
		}
	}
}

// setDefault gives the key its default.
func (k key) setDefault() {
	if k.byDefault == "" {
		return
	}
	if err := parse(k.byDefault, k.value); err != nil {
		panic(fmt.Sprintf("default of %s is %q: %v", k.name, k.byDefault, err))
	}
}

// meaning returns the help text, which also says if the setting has no effect.
func (k key) meaning() string {
	if k.built {
		return k.help
	}
	return k.help + " (has no effect yet)"
}

// keysByName returns the keys of this configuration by name.
func (c *Config) keysByName() map[string]key {
	byName := make(map[string]key)
	for _, k := range c.keys() {
		byName[k.name] = k
	}
	return byName
}

// Keys returns the names of all settings, in the order of the documentation.
func Keys() []string {
	var names []string
	for _, k := range new(Config).keys() {
		names = append(names, k.name)
	}
	return names
}
