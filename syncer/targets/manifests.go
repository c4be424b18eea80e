// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package targets

import (
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/atoll-dev/atoll/syncer"
	"github.com/atoll-dev/atoll/syncer/internal/synctarget"
)

// Manifests returns the objects that install the syncer of a SyncTarget in its cluster, in the order in which they are
// to be applied: a Namespace of its own, a ServiceAccount, a ClusterRole with syncer.DownstreamRights and its binding,
// the Secret with the upstream's kubeconfig, and the Deployment. They can be applied by hand as well. It returns an
// error if in is invalid. It is pure: the same Install gives the same manifests.
func Manifests(in Install) ([]*unstructured.Unstructured, error) {
	if err := in.check(); err != nil {
		return nil, fmt.Errorf("targets: %w", err)
	}
	if in.Types == nil {
		in.Types = syncer.WorkloadTypes()
	}
	if in.Heartbeat <= 0 {
		in.Heartbeat = 20 * time.Second
	}
	in.Types = slices.Clone(in.Types)
	synctarget.SortTypes(in.Types)
	in.Types = slices.Compact(in.Types)

	rules := synctarget.SyncRights(in.Types)
	if in.Capacity >= 0 {
		rules = syncer.DownstreamRights(syncer.Options{Permit: in.Permit}, in.Types...)
	}
	if in.Unscheduled > 0 {
		rules = append(rules, syncer.UnscheduledRights()...)
	}
	name := in.name()
	labels := map[string]string{InstallationLabel: in.owner(), "app.kubernetes.io/name": "atoll-syncer"}
	global := metav1.ObjectMeta{Name: name, Labels: labels}
	local := func(n string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: name, Name: n, Labels: labels} }
	namespace := &corev1.Namespace{ObjectMeta: *global.DeepCopy()}
	namespace.Labels["pod-security.kubernetes.io/enforce"] = "restricted"
	var all []*unstructured.Unstructured
	for _, typed := range []struct {
		gvk schema.GroupVersionKind
		obj any
	}{
		{corev1.SchemeGroupVersion.WithKind("Namespace"), namespace},
		{corev1.SchemeGroupVersion.WithKind("ServiceAccount"), &corev1.ServiceAccount{ObjectMeta: local(program)}},
		{rbacv1.SchemeGroupVersion.WithKind("ClusterRole"), &rbacv1.ClusterRole{ObjectMeta: global, Rules: rules}},
		{rbacv1.SchemeGroupVersion.WithKind("ClusterRoleBinding"), &rbacv1.ClusterRoleBinding{
			ObjectMeta: global, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
			Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: name, Name: program}},
		}},
		{corev1.SchemeGroupVersion.WithKind("Secret"), &corev1.Secret{ObjectMeta: local(upstreamSecret), Data: map[string][]byte{kubeconfigKey: in.Kubeconfig}}},
		{appsv1.SchemeGroupVersion.WithKind("Deployment"), in.deployment(local(program))},
	} {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(typed.obj)
		if err != nil {
			return nil, fmt.Errorf("targets: install: %s: %w", typed.gvk.Kind, err)
		}
		obj := &unstructured.Unstructured{Object: content}
		obj.SetGroupVersionKind(typed.gvk)
		for _, path := range [][]string{
			{"status"}, {"metadata", "creationTimestamp"}, {"spec", "template", "metadata", "creationTimestamp"},
		} {
			unstructured.RemoveNestedField(obj.Object, path...)
		}
		if spec, ok := obj.Object["spec"].(map[string]any); ok && len(spec) == 0 {
			delete(obj.Object, "spec")
		}
		all = append(all, obj)
	}
	return all, nil
}

func (in Install) deployment(meta metav1.ObjectMeta) *appsv1.Deployment {
	names := make([]string, 0, len(in.Types))
	for _, gr := range in.Types {
		names = append(names, gr.String())
	}
	args := []string{
		"-target=" + in.Target, "-identity=" + in.Upstream, "-upstream=" + UpstreamKubeconfig,
		"-types=" + strings.Join(names, ","), "-heartbeat=" + in.Heartbeat.String(),
	}
	if len(in.Permit) > 0 {
		permits := make([]string, 0, len(in.Permit))
		for _, p := range in.Permit {
			permits = append(permits, string(p))
		}
		slices.Sort(permits)
		args = append(args, "-permit="+strings.Join(slices.Compact(permits), ","))
	}
	if in.Unscheduled > 0 {
		args = append(args, "-unscheduled="+in.Unscheduled.String())
	}
	if in.Capacity != 0 {
		args = append(args, "-capacity="+in.Capacity.String())
	}
	selected := map[string]string{InstallationLabel: in.owner()}
	return &appsv1.Deployment{
		ObjectMeta: meta,
		Spec: appsv1.DeploymentSpec{
			Replicas: new(int32(1)),
			// Recreate ends the old Pod before the new one starts: two syncers of one target would both write.
			Strategy: appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType},
			Selector: &metav1.LabelSelector{MatchLabels: selected},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: meta.Labels},
				Spec: corev1.PodSpec{
					ServiceAccountName: program,
					SecurityContext: &corev1.PodSecurityContext{
						RunAsNonRoot: new(true), RunAsUser: new(int64(65532)), FSGroup: new(int64(65532)),
						SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
					},
					Containers: []corev1.Container{{
						Name: program, Image: in.Image, Args: args,
						Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
							corev1.ResourceCPU: resource.MustParse("50m"), corev1.ResourceMemory: resource.MustParse("128Mi"),
						}},
						SecurityContext: &corev1.SecurityContext{
							AllowPrivilegeEscalation: new(false), ReadOnlyRootFilesystem: new(true),
							Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
						},
						// The mount of a directory follows changes of the Secret; the mount of one file does not.
						VolumeMounts: []corev1.VolumeMount{{Name: upstreamSecret, MountPath: upstreamDir, ReadOnly: true}},
					}},
					Volumes: []corev1.Volume{{Name: upstreamSecret, VolumeSource: corev1.VolumeSource{
						Secret: &corev1.SecretVolumeSource{SecretName: upstreamSecret, DefaultMode: new(int32(0o440))},
					}}},
				},
			},
		},
	}
}
