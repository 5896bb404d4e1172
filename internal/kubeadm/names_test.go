package kubeadm_test

import (
	"slices"
	"testing"

	"github.com/replicatedhq/ekco/internal/kubeadm"
)

func TestAnAdvertiseAddressIsReadFromTheAnnotation(t *testing.T) {
	for value, want := range map[string]kubeadm.Endpoint{
		"10.0.0.2:6443":    {AdvertiseAddress: "10.0.0.2", BindPort: 6443},
		"[fd00::2]:6443":   {AdvertiseAddress: "fd00::2", BindPort: 6443},
		"[fd00:0::2]:6444": {AdvertiseAddress: "fd00::2", BindPort: 6444},
	} {
		if got, err := kubeadm.ParseAdvertiseAddress(value); err != nil || got != want {
			t.Errorf("%s: got %+v, %v", value, got, err)
		}
	}
	for _, value := range []string{"", "10.0.0.2", "fd00::2:6443", "host:6443", "10.0.0.2:", "10.0.0.2:0", "10.0.0.2:65536", "10.0.0.2:https"} {
		if got, err := kubeadm.ParseAdvertiseAddress(value); err == nil {
			t.Errorf("%q was read as %+v", value, got)
		}
	}
}

func TestURLsOfEtcdMembersAreThoseThatKubeadmMakes(t *testing.T) {
	ips := []string{"10.0.0.2", "fd00::2"}
	if got := kubeadm.EtcdClientURLs(ips); !slices.Equal(got, []string{"https://10.0.0.2:2379", "https://[fd00::2]:2379"}) {
		t.Errorf("client URLs are %q", got)
	}
	if got := kubeadm.EtcdPeerURLs(ips); !slices.Equal(got, []string{"https://10.0.0.2:2380", "https://[fd00::2]:2380"}) {
		t.Errorf("peer URLs are %q", got)
	}
}
