// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	_ "embed"
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"
)

//go:generate sh -c "go tool -modfile=../../../tools/go.mod controller-gen object:headerFile=../../../config/boilerplate.go.txt crd paths=. output:crd:dir=."

//go:embed operator.example.com_databases.yaml
var databases []byte

// GroupVersion is the group and version of this package's types.
var GroupVersion = schema.GroupVersion{Group: "operator.example.com", Version: "v1"}

// AddToScheme adds the types of the package to a scheme.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion, &Database{}, &DatabaseList{})
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}

// CRD returns the CustomResourceDefinition of Database.
func CRD() (*apiextensionsv1.CustomResourceDefinition, error) {
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.UnmarshalStrict(databases, crd); err != nil {
		return nil, fmt.Errorf("the CRD of Database: %w", err)
	}
	return crd, nil
}
