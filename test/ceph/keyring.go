package ceph

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// These are the capabilities of each kind of daemon, according to Ceph's manual.
var (
	adminCaps = []string{`mon = "allow *"`, `osd = "allow *"`, `mds = "allow *"`, `mgr = "allow *"`}
	monCaps   = []string{`mon = "allow *"`}
	mgrCaps   = []string{`mon = "allow profile mgr"`, `osd = "allow *"`, `mds = "allow *"`}
	osdCaps   = []string{`mon = "allow profile osd"`, `mgr = "allow profile osd"`, `osd = "allow *"`}
)

// writeKeyrings gives every daemon its own key, and the monitor all keys, so that no daemon has to be registered later.
func (c *Cluster) writeKeyrings(ids []int) {
	c.t.Helper()
	all := c.writeKeyring("client.admin", adminCaps)
	all = slices.Concat(all, c.writeKeyring("mgr.x", mgrCaps))
	for _, id := range ids {
		all = slices.Concat(all, c.writeKeyring(fmt.Sprintf("osd.%d", id), osdCaps))
	}
	all = slices.Concat(all, entry("mon.", monCaps))
	c.writeFile("keyring.mon.a", all)
}

func (c *Cluster) writeKeyring(name string, caps []string) []byte {
	c.t.Helper()
	content := entry(name, caps)
	c.writeFile("keyring."+name, content)
	return content
}

func (c *Cluster) writeFile(name string, content []byte) {
	c.t.Helper()
	if err := os.WriteFile(filepath.Join(c.dir, name), content, 0o600); err != nil {
		c.t.Fatal(err)
	}
}

// entry returns one section of a keyring, with a new key.
func entry(name string, caps []string) []byte {
	var text bytes.Buffer
	fmt.Fprintf(&text, "[%s]\n\tkey = %s\n", name, newKey())
	for _, capability := range caps {
		fmt.Fprintf(&text, "\tcaps %s\n", capability)
	}
	return text.Bytes()
}

// newKey returns a key in the format of cephx: type (1: AES), seconds, nanoseconds, length, and 16 random bytes.
func newKey() string {
	const aes, length = 1, 16
	secret := make([]byte, length)
	// rand.Read never fails.
	_, _ = rand.Read(secret)
	key := binary.LittleEndian.AppendUint16(nil, aes)
	key = binary.LittleEndian.AppendUint32(key, uint32(time.Now().Unix()))
	key = binary.LittleEndian.AppendUint32(key, 0)
	key = binary.LittleEndian.AppendUint16(key, length)
	return base64.StdEncoding.EncodeToString(append(key, secret...))
}
