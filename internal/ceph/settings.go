package ceph

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// The settings of [Settings.SetPoolNumber].
const (
	PoolSize    = "size"
	PoolMinSize = "min_size"
	PoolPGMin   = "pg_num_min"
)

// Option is an option of the monitors in Ceph's configuration database.
type Option struct {
	// Value is the configured value. It is empty if the monitors use the default.
	Value string `json:"value,omitempty"`
	// Own is set if the value is in section mon, not in section global.
	Own bool `json:"own,omitempty"`
}

// On reports whether a boolean option is on.
func (o Option) On() bool { return o.Value == "true" || o.Value == "1" }

// SetPoolNumber implements [Settings].
func (c *Client) SetPoolNumber(ctx context.Context, pool, setting string, value int, sure bool) error {
	if err := checkWord(pool, "pool"); err != nil {
		return err
	}
	if !slices.Contains([]string{PoolSize, PoolMinSize, PoolPGMin}, setting) || value < 1 {
		return fmt.Errorf("%w: %s cannot be %d", ErrInvalid, setting, value)
	}
	args := []string{"osd", "pool", "set", pool, setting, strconv.Itoa(value)}
	if sure {
		args = append(args, "--yes-i-really-mean-it")
	}
	return c.change(ctx, false, args...)
}

// MonOption implements [Settings].
func (c *Client) MonOption(ctx context.Context, name string) (Option, error) {
	return query(ctx, c, command{args: []string{"config", "dump"}}, func(answer []byte) (Option, error) { return parseOption(answer, name) })
}

// SetMonOption implements [Settings].
func (c *Client) SetMonOption(ctx context.Context, name, value string) error {
	return c.setOption(ctx, "set", name, value)
}

// ResetMonOption implements [Settings].
func (c *Client) ResetMonOption(ctx context.Context, name string) error {
	return c.setOption(ctx, "rm", name)
}

func (c *Client) setOption(ctx context.Context, how string, words ...string) error {
	for _, word := range words {
		if err := checkWord(word, "option"); err != nil {
			return err
		}
	}
	return c.change(ctx, false, append([]string{"config", how, monSection}, words...)...)
}

// checkWord returns an error for an empty word, or if ceph could read the word as an option or as several words.
func checkWord(word, what string) error {
	if word == "" || strings.HasPrefix(word, "-") || strings.ContainsAny(word, " \t\n") {
		return fmt.Errorf("%w: %q is not a valid %s", ErrInvalid, word, what)
	}
	return nil
}

// The sections of the configuration database that monitors read. A value in mon overrides a value in global.
const (
	monSection    = "mon"
	globalSection = "global"
)

// parseOption reads an option from the answer of `ceph config dump`. It skips values with a mask, because those
// apply only to some monitors.
func parseOption(answer []byte, name string) (Option, error) {
	var parsed []struct {
		Section string `json:"section"`
		Name    string `json:"name"`
		Value   string `json:"value"`
		Mask    string `json:"mask"`
	}
	if err := json.Unmarshal(answer, &parsed); err != nil {
		return Option{}, err
	}
	var option Option
	for _, entry := range parsed {
		switch {
		case entry.Name != name || entry.Mask != "":
		case entry.Section == monSection:
			option = Option{Value: entry.Value, Own: true}
		case entry.Section == globalSection && !option.Own:
			option.Value = entry.Value
		}
	}
	return option, nil
}
