package main

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/replicatedhq/ekco/internal/config"
)

// checkConfig reports every value in the file that the operator would refuse, and every setting that it would ignore. It
// reads no environment variables and no other flags, because installers run it outside the operator's pod.
func (a *app) checkConfig(file string) error {
	if file == "" {
		return usagef("--check-config needs the name of a file")
	}
	cfg, err := config.Load(config.Sources{File: file, Env: func(string) (string, bool) { return "", false }})
	// Do not return exit code 2: the add-on would ask the administrator to correct values, but the file is unreadable.
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
	// The kURL add-on stops the installer if this sentence contains "(pod_image_overrides)".
	if undone := cfg.Undone(); undone != "" {
		text += undone + "\n"
	}
	_, err = fmt.Fprint(a.stdout, text)
	return err
}
