package e2e

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	localClass       = "local"
	localProvisioner = "openebs.io/local"
)

// provision makes a volume on the node that the scheduler chose for a claim, and removes
// those whose claims are gone.
func (k *minioKubelet) provision(ctx context.Context) error {
	volumes := k.c.client.CoreV1().PersistentVolumes()
	for _, claim := range k.seen.claims() {
		node := claim.Annotations["volume.kubernetes.io/selected-node"]
		if claim.Status.Phase != corev1.ClaimPending || node == "" || claim.DeletionTimestamp != nil {
			continue
		}
		if _, err := volumes.Create(ctx, localVolume(claim, node), metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
	}
	for _, volume := range k.seen.volumes() {
		if volume.Spec.StorageClassName == localClass && volume.Status.Phase == corev1.VolumeReleased && volume.DeletionTimestamp == nil {
			if err := volumes.Delete(ctx, volume.Name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
				return err
			}
		}
	}
	return nil
}

// localVolume is a volume that only pods on that node can have.
func localVolume(claim *corev1.PersistentVolumeClaim, node string) *corev1.PersistentVolume {
	name := "pvc-" + string(claim.UID)
	return &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{"pv.kubernetes.io/provisioned-by": localProvisioner}},
		Spec: corev1.PersistentVolumeSpec{
			StorageClassName: localClass, PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimDelete,
			AccessModes: claim.Spec.AccessModes, Capacity: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("10Gi")},
			PersistentVolumeSource: corev1.PersistentVolumeSource{Local: &corev1.LocalVolumeSource{Path: fmt.Sprintf("/var/openebs/local/%s", name)}},
			ClaimRef:               &corev1.ObjectReference{Kind: "PersistentVolumeClaim", APIVersion: "v1", Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID},
			NodeAffinity: &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
				MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{node}}},
			}}}},
		},
	}
}
