package rook

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
)

// groups is the number of placement groups of a pool.
const groups = "4"

// sizePools creates missing pools, and sets the size of each. It ignores pools without a size.
func (o *operator) sizePools(wanted map[string]int) error {
	has, err := o.sizes()
	if err != nil {
		return err
	}
	var failures []error
	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		if size := wanted[name]; size > 0 && has[name] != size {
			failures = append(failures, o.sizePool(name, has[name] > 0, size))
		}
	}
	return errors.Join(failures...)
}

func (o *operator) sizePool(name string, there bool, size int) error {
	var commands [][]string
	if !there {
		commands = [][]string{{"osd", "pool", "create", name, groups}, {"osd", "pool", "application", "enable", name, "test"}}
	}
	commands = append(commands, []string{"osd", "pool", "set", name, "size", strconv.Itoa(size), "--yes-i-really-mean-it"})
	for _, command := range commands {
		if _, err := o.ceph.Try(command...); err != nil {
			return err
		}
	}
	return nil
}

// sizes returns the sizes of all pools, by name.
func (o *operator) sizes() (map[string]int, error) {
	answer, err := o.ceph.Try("osd", "pool", "ls", "detail", "-f", "json")
	if err != nil {
		return nil, err
	}
	var pools []struct {
		Name string `json:"pool_name"`
		Size int    `json:"size"`
	}
	if err := json.Unmarshal([]byte(answer), &pools); err != nil {
		return nil, fmt.Errorf("read the pools of %q: %w", answer, err)
	}
	sizes := map[string]int{}
	for _, pool := range pools {
		sizes[pool.Name] = pool.Size
	}
	return sizes, nil
}
