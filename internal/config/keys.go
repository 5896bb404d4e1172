package config

import (
	"fmt"
	"reflect"
)

// key is one setting: its name, where its value is kept and what is accepted.
type key struct {
	name string
	// value points to the value in the [Config] that the key is of; its type says
	// how text is read. See [ownType] for others than those of Go.
	value any
	// byDefault is the default in the form of the file; empty for the type's zero.
	byDefault string
	help      string
	// check says what is expected of a value, or returns "" if it is fine.
	check  func(any) string
	secret bool
	// built says that the setting has an effect in this EKCO.
	built bool
	// does is what a setting that switches something on has EKCO do, in words
	// that follow "it does not"; empty for others, and for those that are built.
	does string
	// lacks is, of a setting that has an effect, what it asks for and this EKCO does not do yet,
	// in the same words.
	lacks string
	// on reports whether a setting with does switches it on. Nil means that every
	// value but the type's zero does.
	on func() bool
}

// section is the settings of one capability. Each struct that [Config] embeds is one.
type section interface {
	// keys returns the keys of the section, in the order of the documentation.
	keys() []key
}

// settler is a section with settings whose default depends on others of it.
type settler interface {
	// settle fills them in; set are the keys that were given.
	settle(set map[string]bool)
}

// sections returns what the configuration embeds, in its order.
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

// settle fills in the settings whose default depends on others.
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

// meaning returns the help text, which says so if the setting does nothing.
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
