package ceph

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
)

// hostPattern is what Ceph allows as the name of a bucket, less a leading dash,
// which would be an option.
var hostPattern = regexp.MustCompile(`^[A-Za-z0-9_.][A-Za-z0-9_.-]*$`)

// osdPattern is the name of an OSD: removing a host of such a name from the
// CRUSH map would remove the OSD.
var osdPattern = regexp.MustCompile(`^osd\.[0-9]+$`)

const longestHost = 253

func checkHost(host string) error {
	if len(host) > longestHost || !hostPattern.MatchString(host) || osdPattern.MatchString(host) {
		return fmt.Errorf("%w: %q is no name of a CRUSH host", ErrInvalid, host)
	}
	return nil
}

func checkID(id int) error {
	if id < 0 || id > math.MaxInt32 {
		return fmt.Errorf("%w: %d is no id of an OSD", ErrInvalid, id)
	}
	return nil
}

// arguments returns the ids as ceph takes them.
func arguments(ids []int) ([]string, error) {
	if len(ids) == 0 {
		return nil, fmt.Errorf("%w: no OSD is given", ErrInvalid)
	}
	texts := make([]string, len(ids))
	for i, id := range ids {
		if err := checkID(id); err != nil {
			return nil, err
		}
		texts[i] = strconv.Itoa(id)
	}
	return texts, nil
}

func name(id int) string { return "osd." + strconv.Itoa(id) }
