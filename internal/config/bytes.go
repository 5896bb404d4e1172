package config

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Bytes is a size.
type Bytes int64

// String returns the size in its largest whole unit, such as 512Mi.
func (b Bytes) String() string {
	unit := 0
	for ; b != 0 && b%1024 == 0 && unit+1 < len(byteUnits); unit++ {
		b /= 1024
	}
	return strconv.FormatInt(int64(b), 10) + byteUnits[unit]
}

// byteUnits are the units of Kubernetes. Each is 1024 times the previous unit.
var byteUnits = []string{"", "Ki", "Mi", "Gi", "Ti"}

func (*Bytes) kind() string { return "size" }

func (b *Bytes) read(text string) (err error) {
	if *b, err = parseBytes(strings.TrimSpace(text)); err != nil {
		return expectedError("a size like 512Mi or 2Gi")
	}
	return nil
}

// parseBytes reads what String writes.
func parseBytes(text string) (Bytes, error) {
	unit := int64(1)
	for i, name := range byteUnits[1:] {
		if digits, found := strings.CutSuffix(text, name); found {
			text, unit = digits, 1<<(10*(i+1))
			break
		}
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 || n > math.MaxInt64/unit {
		return 0, fmt.Errorf("read %q: not a size", text)
	}
	return Bytes(n * unit), nil
}
