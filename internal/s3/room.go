package s3

import "fmt"

// Drive is a directory in which a server stores its part of the data.
type Drive struct {
	// Host is the name of the server in the store, empty for a single server.
	Host string
	// Works is set if the drive exists and is not being restored. Otherwise the other fields may be
	// wrong.
	Works bool
	// Set is the number of the pool and the number of the erasure set in it. Each object is spread
	// over the drives of a set.
	Set [2]int
	// Total and Free are the bytes of its file system, which other drives may share.
	Total, Free uint64
	// Device identifies the file system on its machine, empty if the server does not report it, as
	// old ones do not.
	Device string
}

// reserved is how many percent of a file system stay free: below 15, the kubelet's default is to
// evict pods from the node, MinIO first of all.
const reserved = 20

// usable is how many bytes of its file system can be filled.
func (d Drive) usable() uint64 {
	reserve := d.Total / 100 * reserved
	if d.Free < reserve {
		return 0
	}
	return d.Free - reserve
}

// fileSystem identifies a file system. Without a device, file systems of the same size on one
// machine count as one.
func (d Drive) fileSystem(machine string) string {
	if d.Device != "" {
		return machine + " " + d.Device
	}
	return fmt.Sprint(machine, " of ", d.Total)
}

// bytesPerVersion is about how many bytes a version takes on each drive besides its content, for a
// directory and a file.
const bytesPerVersion = 8 << 10

// Takes is how much of [Server.Room] so many versions with so many bytes of content need.
func (s Server) Takes(versions, bytes int64) uint64 {
	drives := 1
	for _, set := range s.sets() {
		drives = max(drives, set.drives-s.Parity)
	}
	return uint64(max(bytes, 0)) + uint64(max(versions, 0))*bytesPerVersion*uint64(drives)
}

// Room is how many bytes of content fit if all drives fill evenly, and a fifth of each file system
// stays free. Drives share the space of their file system. Function machine returns the machine of
// a host, because several hosts may be on one machine.
func (s Server) Room(machine func(host string) string) uint64 {
	sharing := make(map[string]uint64)
	for _, d := range s.Drives {
		sharing[d.fileSystem(machine(d.Host))]++
	}
	room := uint64(0)
	for _, set := range s.sets() {
		least, known := uint64(0), false
		for _, d := range set.work {
			// In each set, the fullest drive is the limit.
			if share := d.usable() / sharing[d.fileSystem(machine(d.Host))]; !known || share < least {
				least, known = share, true
			}
		}
		room += least * uint64(max(set.drives-s.Parity, 0))
	}
	return room
}

// set is an erasure set: the drives over which objects are spread.
type set struct {
	drives int
	work   []Drive
}

func (s Server) sets() map[[2]int]set {
	sets := make(map[[2]int]set)
	for _, d := range s.Drives {
		one := sets[d.Set]
		one.drives++
		if d.Works {
			one.work = append(one.work, d)
		}
		sets[d.Set] = one
	}
	return sets
}
