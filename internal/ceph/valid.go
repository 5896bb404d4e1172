package ceph

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
)

// hostPattern matches the bucket names that Ceph allows, except names with a leading dash: ceph would read them as
// options.
var hostPattern = regexp.MustCompile(`^[A-Za-z0-9_.][A-Za-z0-9_.-]*$`)

// osdPattern matches names of OSDs: "ceph osd crush rm" with such a name would remove the OSD.
var osdPattern = regexp.MustCompile(`^osd\.[0-9]+$`)

const maxHostName = 253

func checkHost(host string) error {
	if len(host) > maxHostName || !hostPattern.MatchString(host) || osdPattern.MatchString(host) {
		return fmt.Errorf("%w: %q is not the name of a CRUSH host", ErrInvalid, host)
	}
	return nil
}

func checkID(id int) error {
	if id < 0 || id > math.MaxInt32 {
		return fmt.Errorf("%w: %d is not the id of an OSD", ErrInvalid, id)
	}
	return nil
}

// arguments returns the ids as arguments of ceph.
func arguments(ids []int) ([]string, error) {
	if len(ids) == 0 {
		return nil, fmt.Errorf("%w: no OSD given", ErrInvalid)
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
