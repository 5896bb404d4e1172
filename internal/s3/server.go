package s3

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
)

// adminPath is the path of the administrator's API.
const adminPath = "/minio/admin/v3"

// Server is a store's report about its servers.
type Server struct {
	// Version is the version of one server.
	Version string
	// Deployment is the id that the store got when it was created. It is stored with the data: a store with another
	// id has other data.
	Deployment string
	// Parity is the number of parity drives in each set.
	Parity int
	// Drives are all drives of the store, including unavailable ones.
	Drives []Drive
}

// Server asks the store for its version and drives.
func (c *Client) Server(ctx context.Context) (Server, error) {
	answer, err := c.request(ctx, http.MethodGet, adminPath+"/info", "", nil)
	if err != nil {
		return Server{}, fmt.Errorf("ask %s for its version and free space: %w", c, explain(err))
	}
	var body info
	if err := json.Unmarshal(answer, &body); err != nil {
		return Server{}, fmt.Errorf("read the version and free space of %s: %w", c, err)
	}
	if len(body.Servers) == 0 {
		return Server{}, fmt.Errorf("ask %s for its version and free space: the answer has no server", c)
	}
	return body.server(), nil
}

// info is the part of the answer that EKCO reads.
type info struct {
	DeploymentID string
	Backend      struct{ StandardSCParity int }
	Servers      []struct {
		Endpoint, Version string
		Drives            []drive
	}
}

type drive struct {
	Endpoint, State string
	Major, Minor    uint32
	TotalSpace      uint64
	AvailSpace      uint64
	PoolIndex       int `json:"pool_index"`
	SetIndex        int `json:"set_index"`
}

func (i *info) server() Server {
	s := Server{Version: i.Servers[0].Version, Deployment: i.DeploymentID, Parity: i.Backend.StandardSCParity}
	for _, server := range i.Servers {
		for _, d := range server.Drives {
			s.Drives = append(s.Drives, d.drive(server.Endpoint))
		}
	}
	return s
}

func (d drive) drive(server string) Drive {
	one := Drive{
		Host: host(d.Endpoint), Works: d.State == "ok", Set: [2]int{d.PoolIndex, d.SetIndex},
		Total: d.TotalSpace, Free: d.AvailSpace,
	}
	if one.Host == "" {
		one.Host = host("http://" + server)
	}
	if d.Major != 0 || d.Minor != 0 {
		one.Device = fmt.Sprintf("%d:%d", d.Major, d.Minor)
	}
	return one
}

// host returns the host of a URL, or "" if it has no host.
func host(endpoint string) string {
	at, err := url.Parse(endpoint)
	if err != nil {
		return ""
	}
	return at.Hostname()
}

// headerNumber returns a header's value as a number, or 0 if the value is not a number.
func headerNumber(header http.Header, name string) int {
	n, err := strconv.Atoi(header.Get(name))
	if err != nil {
		return 0
	}
	return n
}
