package config

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/pflag"
)

// Sources says where settings come from.
type Sources struct {
	// File is the file to read. If it is empty, the first file named config with the extension json, toml, yaml
	// or yml in Dirs is read, if there is one.
	File string
	// Dirs are searched for a file; see [SearchDirs].
	Dirs []string
	// Env looks up an environment variable. An empty variable counts as not set. Nil means the process's environment.
	Env func(name string) (string, bool)
	// Flags may have flags of this package. Load reads only the flags that the user gave. It may be nil.
	Flags *pflag.FlagSet
	// Only, if not empty, limits what is read and checked to these keys, so that a command that needs just the
	// journal's path works with an otherwise invalid file.
	Only []string
}

// ErrInvalid is wrapped by every error about an invalid value or file.
var ErrInvalid = errors.New("invalid configuration")

// SearchDirs returns the directories that are searched for a file: /etc/ekco,
// the home directory and the working directory.
func SearchDirs() []string {
	dirs := []string{"/etc/ekco"}
	if home, err := os.UserHomeDir(); err == nil {
		dirs = append(dirs, home)
	}
	return append(dirs, ".")
}

// Load reads the settings. Its error joins all problems, each wrapping [ErrInvalid].
func Load(from Sources) (Config, error) {
	if from.Env == nil {
		from.Env = os.LookupEnv
	}
	config := Default()
	settings, err := from.file(&config)
	if err != nil {
		return Config{}, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	settings = append(settings, from.environment()...)
	settings = append(settings, from.flags()...)

	set, problems := config.apply(settings, from.wanted)
	if len(problems) > 0 {
		return Config{}, errors.Join(problems...)
	}
	config.settle(set)
	slices.Sort(config.Explicit)
	return config, nil
}

func (from Sources) wanted(name string) bool {
	return len(from.Only) == 0 || slices.Contains(from.Only, name)
}

func (from Sources) file(config *Config) ([]setting, error) {
	path := from.File
	if path == "" {
		found, err := find(from.Dirs)
		if found == "" || err != nil {
			return nil, err
		}
		path = found
	}
	settings, err := readFile(path)
	config.File = path
	return settings, err
}

// journalVariable is another variable for key "journal", for shells in which JOURNAL may mean something else. It takes
// precedence over JOURNAL.
const journalVariable = "EKCO_JOURNAL"

func (from Sources) environment() []setting {
	var settings []setting
	add := func(key, variable string) {
		if text, ok := from.Env(variable); ok && text != "" {
			settings = append(settings, setting{name: key, text: text, origin: "environment variable " + variable, explicit: true})
		}
	}
	for _, k := range new(Config).keys() {
		add(k.name, strings.ToUpper(k.name))
	}
	add("journal", journalVariable)
	return settings
}

func (from Sources) flags() []setting {
	if from.Flags == nil {
		return nil
	}
	var settings []setting
	from.Flags.Visit(func(flag *pflag.Flag) {
		if value, ok := flag.Value.(*flagValue); ok {
			settings = append(settings, setting{name: value.key, text: value.text, origin: "flag --" + flag.Name, explicit: true})
		}
	})
	return settings
}

// apply sets the keys. If a key has several settings, only the last is read and checked. It returns the keys
// that were set.
func (c *Config) apply(settings []setting, wanted func(string) bool) (map[string]bool, []error) {
	known := c.keysByName()
	last := make(map[string]setting, len(settings))
	for _, s := range settings {
		if _, is := known[s.name]; !is {
			c.UnknownKeys = append(c.UnknownKeys, s.name)
			continue
		}
		last[s.name] = s
	}
	slices.Sort(c.UnknownKeys)
	set := make(map[string]bool, len(last))
	var problems []error
	for _, k := range c.keys() {
		s, given := last[k.name]
		if !given || !wanted(k.name) {
			continue
		}
		set[k.name] = true
		if s.explicit {
			c.Explicit = append(c.Explicit, k.name)
		}
		if problem := k.take(s); problem != nil {
			problems = append(problems, problem)
		}
	}
	return set, problems
}

// take sets one key, or returns why its value is invalid.
func (k key) take(s setting) error {
	err := error(expectedError(s.problem))
	if s.problem == "" {
		err = k.read(s.text)
	}
	if err == nil {
		return nil
	}
	shown := fmt.Sprintf("%q", s.text)
	switch {
	case k.secret:
		shown = "a value that is not shown"
	case s.problem != "":
		shown = "a structure"
	}
	return fmt.Errorf("%w: %s is %s (%s): %w", ErrInvalid, k.name, shown, s.origin, err)
}
