package config

import (
	"fmt"
	"strconv"
	"strings"
)

// MaxUnknown is a maximum number of nodes: a number, or a percentage of all nodes.
type MaxUnknown struct {
	Percent  int
	Absolute int
	// IsPercent is set if it is a percentage.
	IsPercent bool
}

// String returns the form that the file takes.
func (m MaxUnknown) String() string {
	if m.IsPercent {
		return strconv.Itoa(m.Percent) + "%"
	}
	return strconv.Itoa(m.Absolute)
}

func (*MaxUnknown) kind() string { return "number or percentage" }

func (m *MaxUnknown) read(text string) (err error) {
	if *m, err = parseMaxUnknown(strings.TrimSpace(text)); err != nil {
		return expectedError("a number of nodes like 3, or a percentage from 0% to 100%")
	}
	return nil
}

// parseMaxUnknown reads "55%" or "3".
func parseMaxUnknown(text string) (MaxUnknown, error) {
	digits, isPercent := strings.CutSuffix(text, "%")
	number, err := strconv.ParseUint(digits, 10, 31)
	switch {
	case err != nil:
		return MaxUnknown{}, fmt.Errorf("read %q: want a number of nodes like 3, or a percentage like 55%%", text)
	case isPercent && number > 100:
		return MaxUnknown{}, fmt.Errorf("read %q: want a percentage from 0%% to 100%%", text)
	case isPercent:
		return MaxUnknown{Percent: int(number), IsPercent: true}, nil
	}
	return MaxUnknown{Absolute: int(number)}, nil
}
