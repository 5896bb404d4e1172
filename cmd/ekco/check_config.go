package main

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/replicatedhq/ekco/internal/config"
)

// checkConfig reports every value of the file that the operator would refuse, and what the operator would ignore. It
// reads no environment variable and no flag, because installers check the file on another machine.
func (a *app) checkConfig(file string) error {
	if file == "" {
		return usagef("--check-config needs the name of a file")
	}
	cfg, err := config.Load(config.Sources{File: file, Env: func(string) (string, bool) { return "", false }})
	// The kURL add-on takes exit code 2 for invalid values, and asks the administrator to correct them.
	if unreadable, is := errors.AsType[*fs.PathError](err); is {
		return fmt.Errorf("read the configuration to check: %w", unreadable)
	}
	if err != nil {
		return err
	}
	text := file + " is valid\n"
	if len(cfg.UnknownKeys) > 0 {
		text += "keys that this EKCO does not know and ignores: " + strings.Join(cfg.UnknownKeys, ", ") + "\n"
	}
	// The kURL add-on searches this sentence for pod_image_overrides, and then stops.
	if undone := cfg.Undone(); undone != "" {
		text += undone + "\n"
	}
	_, err = fmt.Fprint(a.stdout, text)
	return err
}
