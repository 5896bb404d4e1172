package ceph

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// versionPattern reads "ceph version 16.2.15 (618f…) pacific (stable)". Vendors
// append to the number: "16.2.10-248.el8cp".
var versionPattern = regexp.MustCompile(`^ceph version (\d{1,9})\.(\d{1,9})\.(\d{1,9})[^ ]*(?: \([^)]*\)(?: ([a-z]+))?)?`)

func parseVersion(answer []byte) (Version, error) {
	var parsed struct {
		Version string `json:"version"`
	}
	if err := json.Unmarshal(answer, &parsed); err != nil {
		return Version{}, err
	}
	found := versionPattern.FindStringSubmatch(parsed.Version)
	if found == nil {
		return Version{}, fmt.Errorf("%q is not a version of Ceph", parsed.Version)
	}
	var numbers [3]int
	for i := range numbers {
		// The pattern allows at most nine digits, so there is no overflow.
		numbers[i], _ = strconv.Atoi(found[i+1])
	}
	return Version{Major: numbers[0], Minor: numbers[1], Patch: numbers[2], Release: found[4]}, nil
}

func parseHealth(answer []byte) (Health, error) {
	var parsed struct {
		Health *struct {
			Status Status `json:"status"`
			Checks map[string]struct {
				Severity Status `json:"severity"`
				Summary  struct {
					Message string `json:"message"`
				} `json:"summary"`
				Muted bool `json:"muted"`
			} `json:"checks"`
		} `json:"health"`
		QuorumNames []string `json:"quorum_names"`
		MgrMap      struct {
			Available bool `json:"available"`
		} `json:"mgrmap"`
		PGMap struct {
			PGsByState []struct {
				StateName string `json:"state_name"`
				Count     int    `json:"count"`
			} `json:"pgs_by_state"`
		} `json:"pgmap"`
	}
	if err := json.Unmarshal(answer, &parsed); err != nil {
		return Health{}, err
	}
	if parsed.Health == nil || parsed.Health.Status == "" {
		return Health{}, fmt.Errorf("the answer has no health.status")
	}
	health := Health{
		Status: parsed.Health.Status, MgrActive: parsed.MgrMap.Available,
		Quorum: parsed.QuorumNames, PGs: make(map[string]int, len(parsed.PGMap.PGsByState)),
	}
	for code, check := range parsed.Health.Checks {
		health.Checks = append(health.Checks, Check{
			Code: code, Severity: check.Severity, Message: check.Summary.Message, Muted: check.Muted,
		})
	}
	slices.SortFunc(health.Checks, func(a, b Check) int { return strings.Compare(a.Code, b.Code) })
	for _, state := range parsed.PGMap.PGsByState {
		health.PGs[state.StateName] += state.Count
	}
	return health, nil
}

// treeItem is a bucket or an OSD in the answer of `ceph osd tree`.
type treeItem struct {
	ID          int     `json:"id"`
	Name        string  `json:"name"`
	Type        string  `json:"type"`
	Children    []int   `json:"children"`
	Exists      int     `json:"exists"`
	Status      string  `json:"status"`
	Reweight    float64 `json:"reweight"`
	CrushWeight float64 `json:"crush_weight"`
	DeviceClass string  `json:"device_class"`
}

func parseTree(answer []byte) (Tree, error) {
	var parsed struct {
		Nodes *[]treeItem `json:"nodes"`
		Stray []treeItem  `json:"stray"`
	}
	if err := json.Unmarshal(answer, &parsed); err != nil {
		return Tree{}, err
	}
	if parsed.Nodes == nil {
		return Tree{}, fmt.Errorf("the answer has no nodes")
	}
	osds := make(map[int]OSD)
	for _, item := range parsed.Stray {
		if item.Type == "osd" {
			osds[item.ID] = item.osd()
		}
	}
	for id, osd := range osds {
		osd.Stray = true
		osds[id] = osd
	}
	for _, item := range *parsed.Nodes {
		if item.Type == "osd" {
			osds[item.ID] = item.osd()
		}
	}
	return Tree{Hosts: hostsOf(*parsed.Nodes, osds), OSDs: sorted(osds)}, nil
}

func (i treeItem) osd() OSD {
	return OSD{
		Ref: Ref{ID: i.ID}, Exists: i.Exists != 0, Up: i.Status == "up",
		Reweight: i.Reweight, Weight: i.CrushWeight, DeviceClass: i.DeviceClass,
	}
}

// hostsOf returns the hosts, and sets the host of each OSD. A host can be listed more than once, under several
// roots.
func hostsOf(items []treeItem, osds map[int]OSD) []Host {
	children := make(map[string][]int)
	for _, item := range items {
		if item.Type != "host" {
			continue
		}
		inHost := children[item.Name]
		for _, child := range item.Children {
			// Buckets have negative ids.
			if osd, ok := osds[child]; ok && child >= 0 && !slices.Contains(inHost, child) {
				inHost = append(inHost, child)
				osd.Host = item.Name
				osds[child] = osd
			}
		}
		children[item.Name] = inHost
	}
	hosts := make([]Host, 0, len(children))
	for name, inHost := range children {
		slices.Sort(inHost)
		hosts = append(hosts, Host{Name: name, OSDs: inHost})
	}
	slices.SortFunc(hosts, func(a, b Host) int { return strings.Compare(a.Name, b.Name) })
	return hosts
}

func sorted(osds map[int]OSD) []OSD {
	list := make([]OSD, 0, len(osds))
	for _, osd := range osds {
		list = append(list, osd)
	}
	slices.SortFunc(list, func(a, b OSD) int { return a.ID - b.ID })
	return list
}

// parseUUIDs reads the UUIDs of all OSDs from the answer of `ceph osd dump`.
func parseUUIDs(answer []byte) (map[int]string, error) {
	var parsed struct {
		OSDs *[]struct {
			OSD  int    `json:"osd"`
			UUID string `json:"uuid"`
		} `json:"osds"`
	}
	if err := json.Unmarshal(answer, &parsed); err != nil {
		return nil, err
	}
	if parsed.OSDs == nil {
		return nil, fmt.Errorf("the answer has no osds")
	}
	uuids := make(map[int]string, len(*parsed.OSDs))
	for _, osd := range *parsed.OSDs {
		uuids[osd.OSD] = osd.UUID
	}
	return uuids, nil
}

// parseFSID reads the cluster's fsid from the answer of `ceph osd dump`.
func parseFSID(answer []byte) (string, error) {
	var parsed struct {
		FSID string `json:"fsid"`
	}
	err := json.Unmarshal(answer, &parsed)
	return parsed.FSID, err
}

func parseSafety(answer []byte) (Safety, error) {
	var parsed struct {
		Safe         *[]int `json:"safe_to_destroy"`
		Active       []int  `json:"active"`
		MissingStats []int  `json:"missing_stats"`
		StoredPGs    []int  `json:"stored_pgs"`
	}
	if err := json.Unmarshal(answer, &parsed); err != nil {
		return Safety{}, err
	}
	if parsed.Safe == nil {
		return Safety{}, fmt.Errorf("the answer has no safe_to_destroy")
	}
	return Safety{Safe: *parsed.Safe, Active: parsed.Active, MissingStats: parsed.MissingStats, StoredPGs: parsed.StoredPGs}, nil
}
