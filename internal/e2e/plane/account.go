// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package plane

import (
	"context"
	"errors"
	"fmt"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd/api"
)

// accountsNamespace is the namespace of the service accounts that RunAs creates.
const accountsNamespace = "atoll-e2e"

var (
	clusterRoles         = rbacv1.SchemeGroupVersion.WithResource("clusterroles")
	clusterRoleBindings  = rbacv1.SchemeGroupVersion.WithResource("clusterrolebindings")
	subjectAccessReviews = authorization("subjectaccessreviews")
)

// ServiceAccountKubeconfig returns a kubeconfig with a token of a service account, valid for an
// hour. It creates the namespace and the account if they do not exist, and grants no rights.
func (p *Plane) ServiceAccountKubeconfig(ctx context.Context, namespace, name string) ([]byte, error) {
	client, err := p.api()
	if err != nil {
		return nil, err
	}
	token, err := accountToken(ctx, client, namespace, name)
	if err != nil {
		return nil, fmt.Errorf("%s: service account %s/%s: %w", p.name, namespace, name, err)
	}
	return p.kubeconfig(&api.AuthInfo{Token: token})
}

// RunAs returns a kubeconfig with exactly the rights that the given ClusterRoles grant, and those
// that every authenticated user has. clusterRoles is YAML, one or several documents. Each call
// makes a service account, roles and bindings of its own, with a random suffix, and returns when
// the API server acts on them.
func (p *Plane) RunAs(ctx context.Context, clusterRoles []byte) ([]byte, error) {
	roles, err := parseClusterRoles(clusterRoles)
	if err != nil {
		return nil, fmt.Errorf("%s: run as: %w", p.name, err)
	}
	client, err := p.api()
	if err != nil {
		return nil, err
	}
	suffix := "-" + rand.String(5)
	account := roles[0].GetName() + suffix
	kubeconfig, err := p.ServiceAccountKubeconfig(ctx, accountsNamespace, account)
	if err != nil {
		return nil, err
	}
	for _, role := range roles {
		role.SetName(role.GetName() + suffix)
		if err := p.grant(ctx, client, role, account); err != nil {
			return nil, fmt.Errorf("%s: run as %s: %w", p.name, account, err)
		}
	}
	return kubeconfig, nil
}

func parseClusterRoles(manifests []byte) ([]*unstructured.Unstructured, error) {
	objects, err := parse(manifests)
	if err != nil {
		return nil, err
	}
	if len(objects) == 0 {
		return nil, errors.New("the manifests contain no ClusterRole")
	}
	for _, object := range objects {
		if object.GroupVersionKind() != rbacv1.SchemeGroupVersion.WithKind("ClusterRole") {
			return nil, fmt.Errorf("%s %s is not a ClusterRole of %s", object.GetKind(), object.GetName(), rbacv1.SchemeGroupVersion)
		}
	}
	return objects, nil
}

// grant creates the role and binds the account to the role. It then waits until the authorizer,
// which watches roles and bindings, allows the account one request that the role's first rule
// covers.
func (p *Plane) grant(ctx context.Context, client dynamic.Interface, role *unstructured.Unstructured, account string) error {
	if _, err := client.Resource(clusterRoles).Create(ctx, role, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("creating ClusterRole %s: %w", role.GetName(), err)
	}
	binding := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": rbacv1.SchemeGroupVersion.String(),
		"kind":       "ClusterRoleBinding",
		"metadata":   map[string]any{"name": role.GetName()},
		"roleRef":    map[string]any{"apiGroup": rbacv1.GroupName, "kind": "ClusterRole", "name": role.GetName()},
		"subjects": []any{
			map[string]any{"kind": "ServiceAccount", "namespace": accountsNamespace, "name": account},
		},
	}}
	if _, err := client.Resource(clusterRoleBindings).Create(ctx, binding, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("creating ClusterRoleBinding %s: %w", binding.GetName(), err)
	}
	review, err := firstRuleReview(role, account)
	if err != nil || review == nil {
		return err
	}
	return await(ctx, "the authorizer to know ClusterRole "+role.GetName(), func(ctx context.Context) error {
		answer, err := client.Resource(subjectAccessReviews).Create(ctx, review, metav1.CreateOptions{})
		if err != nil {
			return err
		}
		if allowed, _, _ := unstructured.NestedBool(answer.Object, "status", "allowed"); !allowed {
			return errors.New("not allowed yet")
		}
		return nil
	})
}

// accountToken makes sure that the account exists and requests a token for it.
func accountToken(ctx context.Context, client dynamic.Interface, namespace, name string) (string, error) {
	space := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Namespace",
		"metadata": map[string]any{"name": namespace},
	}}
	_, err := client.Resource(namespaces).Create(ctx, space, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return "", fmt.Errorf("creating its namespace: %w", err)
	}
	account := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ServiceAccount",
		"metadata": map[string]any{"name": name, "namespace": namespace},
	}}
	accounts := client.Resource(serviceAccounts).Namespace(namespace)
	_, err = accounts.Create(ctx, account, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return "", fmt.Errorf("creating it: %w", err)
	}
	request := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
		"metadata": map[string]any{"name": name},
		"spec":     map[string]any{"expirationSeconds": int64(3600)},
	}}
	answer, err := accounts.Create(ctx, request, metav1.CreateOptions{}, "token")
	if err != nil {
		return "", fmt.Errorf("requesting a token: %w", err)
	}
	token, _, err := unstructured.NestedString(answer.Object, "status", "token")
	if err == nil && token == "" {
		err = errors.New("the answer holds none")
	}
	if err != nil {
		return "", fmt.Errorf("requesting a token: %w", err)
	}
	return token, nil
}
