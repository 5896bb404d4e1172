package s3

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
)

// admin is where the administrator's API is.
const admin = "/minio/admin/v3"

// Server is what a store says of the machines it runs on.
type Server struct {
	// Version is that of one of them.
	Version string
	// Drives and Offline count the drives of the store, and those of them that are
	// away.
	Drives, Offline int
	// Parity is how many drives of a set hold redundancy.
	Parity int
	// Free is how many bytes of content fit, if all drives fill alike. Drives that
	// share a file system, as local volumes do, each count all of its room.
	Free uint64
}

// Server asks the store for its version and room.
func (c *Client) Server(ctx context.Context) (Server, error) {
	answer, err := c.request(ctx, http.MethodGet, admin+"/info", "", nil)
	if err != nil {
		return Server{}, fmt.Errorf("ask %s for its version and room: %w", c, explain(err))
	}
	var told info
	if err := json.Unmarshal(answer, &told); err != nil {
		return Server{}, fmt.Errorf("read what %s says of itself: %w", c, err)
	}
	if len(told.Servers) == 0 {
		return Server{}, fmt.Errorf("%s names no server", c)
	}
	return told.server(), nil
}

// info is the part of the answer that is of interest.
type info struct {
	Backend struct{ OnlineDisks, OfflineDisks, StandardSCParity int }
	Servers []struct {
		Version string
		Drives  []drive
	}
}

type drive struct {
	State      string
	AvailSpace uint64
	PoolIndex  int `json:"pool_index"`
	SetIndex   int `json:"set_index"`
}

// server adds up the room of all sets. In each, the fullest drive decides.
func (i *info) server() Server {
	s := Server{
		Version: i.Servers[0].Version, Parity: i.Backend.StandardSCParity,
		Drives: i.Backend.OnlineDisks + i.Backend.OfflineDisks, Offline: i.Backend.OfflineDisks,
	}
	type set struct {
		drives int
		// least is the room on the fullest drive that works.
		least uint64
		known bool
	}
	sets := make(map[[2]int]*set)
	for _, server := range i.Servers {
		for _, d := range server.Drives {
			key := [2]int{d.PoolIndex, d.SetIndex}
			if sets[key] == nil {
				sets[key] = &set{}
			}
			if one := sets[key]; d.State == "ok" && (!one.known || d.AvailSpace < one.least) {
				one.least, one.known = d.AvailSpace, true
			}
			sets[key].drives++
		}
	}
	for _, one := range sets {
		s.Free += one.least * uint64(max(one.drives-s.Parity, 0))
	}
	return s
}

// number is a header's value as a number, 0 if it has none.
func number(header http.Header, name string) int {
	n, err := strconv.Atoi(header.Get(name))
	if err != nil {
		return 0
	}
	return n
}
