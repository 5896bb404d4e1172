package ceph

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/replicatedhq/ekco/internal/parallel"
)

// Room is the used and the total space of the cluster, as the mgr counted it last, in bytes.
type Room struct {
	// Nearfull is the used part of an OSD, from 0 to 1, above which Ceph warns.
	Nearfull float64
	// Capacity is the size of each OSD, by its id.
	Capacity map[int]int64
	// Used is the used space of all OSDs, including their own overhead.
	Used int64
	// Pools has the size of each pool's data, by the pool's name.
	Pools map[string]Stored
}

// Stored is the size of a pool's data in bytes. Data counts one copy, and Raw all copies.
type Stored struct{ Data, Raw int64 }

// Lacks returns the reason why the OSDs lack space for the wanted number of copies of each named pool, or "". The
// copies of a pool must be on different hosts, and no OSD may exceed the nearfull ratio. Other pools keep their copies.
// An unknown pool needs no space.
func (r Room) Lacks(tree Tree, copies map[string]int) string {
	places := r.places(tree)
	var available int64
	for _, place := range places {
		available += place
	}
	needed, data, spreadNeeded := r.Used, int64(0), int64(0)
	for name, copies := range copies {
		stored := r.Pools[name]
		needed += max(0, stored.Data*int64(copies)-stored.Raw)
		data, spreadNeeded = data+stored.Data, spreadNeeded+stored.Data*int64(copies)
	}
	// A host has at most one copy, so it cannot use more space than one copy needs.
	var spreadAvailable int64
	for _, place := range places {
		spreadAvailable += min(place, data)
	}
	switch {
	case needed > available:
		return fmt.Sprintf("all data would need %s, but the OSDs have %s below the nearfull ratio of %.2f", amount(needed), amount(available), r.Nearfull)
	case spreadNeeded > spreadAvailable:
		return fmt.Sprintf("copies of %s on different hosts would need %s, but the hosts have %s below the nearfull ratio of %.2f",
			amount(data), amount(spreadNeeded), amount(spreadAvailable), r.Nearfull)
	}
	return ""
}

// places returns the space below the nearfull ratio of each serving host, sorted by host name.
func (r Room) places(tree Tree) []int64 {
	hosts := map[string]int64{}
	for _, osd := range tree.OSDs {
		if osd.Host != "" && osd.serves() {
			hosts[osd.Host] += int64(float64(r.Capacity[osd.ID]) * r.Nearfull)
		}
	}
	var places []int64
	for _, host := range slices.Sorted(maps.Keys(hosts)) {
		places = append(places, hosts[host])
	}
	return places
}

// amount formats a number of bytes, such as "1.5 GiB".
func amount(n int64) string {
	units := []string{"B", "KiB", "MiB", "GiB", "TiB"}
	value := float64(n)
	for value >= 1024 && len(units) > 1 {
		value, units = value/1024, units[1:]
	}
	return fmt.Sprintf("%.4g %s", value, units[0])
}

// Room implements [API].
func (c *Client) Room(ctx context.Context) (Room, error) {
	var room Room
	var used usedOSDs
	var pools map[string]Stored
	var ratioErr, usedErr, poolsErr error
	parallel.Run(
		func() { room.Nearfull, ratioErr = query(ctx, c, command{args: []string{"osd", "dump"}}, parseNearfull) },
		func() { used, usedErr = query(ctx, c, command{args: []string{"osd", "df"}, mgr: true}, parseOSDUse) },
		func() { pools, poolsErr = query(ctx, c, command{args: []string{"df"}}, parseStored) },
	)
	if err := cmp.Or(ratioErr, usedErr, poolsErr); err != nil {
		return Room{}, err
	}
	room.Capacity, room.Used, room.Pools = used.capacity, used.used, pools
	return room, nil
}

// parseNearfull reads the nearfull ratio from the answer of `ceph osd dump`.
func parseNearfull(answer []byte) (float64, error) {
	var parsed struct {
		Ratio *float64 `json:"nearfull_ratio"`
	}
	err := json.Unmarshal(answer, &parsed)
	switch {
	case err != nil:
		return 0, err
	case parsed.Ratio == nil || *parsed.Ratio <= 0:
		return 0, errors.New("the answer has no nearfull_ratio")
	}
	return *parsed.Ratio, nil
}

// usedOSDs has the size of each OSD, by its id, and the used space of all OSDs, in bytes.
type usedOSDs struct {
	capacity map[int]int64
	used     int64
}

// parseOSDUse reads the answer of `ceph osd df`.
func parseOSDUse(answer []byte) (usedOSDs, error) {
	var parsed struct {
		Nodes *[]struct {
			ID     int   `json:"id"`
			KB     int64 `json:"kb"`
			KBUsed int64 `json:"kb_used"`
		} `json:"nodes"`
	}
	if err := json.Unmarshal(answer, &parsed); err != nil {
		return usedOSDs{}, err
	}
	if parsed.Nodes == nil {
		return usedOSDs{}, errors.New("the answer has no nodes")
	}
	use := usedOSDs{capacity: make(map[int]int64, len(*parsed.Nodes))}
	for _, osd := range *parsed.Nodes {
		use.capacity[osd.ID] = osd.KB << 10
		use.used += osd.KBUsed << 10
	}
	return use, nil
}

// parseStored reads the pools from the answer of `ceph df`.
func parseStored(answer []byte) (map[string]Stored, error) {
	var parsed struct {
		Pools *[]struct {
			Name  string `json:"name"`
			Stats struct {
				Stored *int64 `json:"stored"`
				Raw    int64  `json:"bytes_used"`
			} `json:"stats"`
		} `json:"pools"`
	}
	if err := json.Unmarshal(answer, &parsed); err != nil {
		return nil, err
	}
	if parsed.Pools == nil {
		return nil, errors.New("the answer has no pools")
	}
	pools := make(map[string]Stored, len(*parsed.Pools))
	for _, pool := range *parsed.Pools {
		if pool.Stats.Stored == nil {
			return nil, fmt.Errorf("the answer does not say how much pool %s stores", pool.Name)
		}
		pools[pool.Name] = Stored{Data: *pool.Stats.Stored, Raw: pool.Stats.Raw}
	}
	return pools, nil
}
