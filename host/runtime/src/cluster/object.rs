//! What kinds of objects the client reads and writes.

use std::fmt::Debug;

use serde::Serialize;
use serde::de::DeserializeOwned;

/// A Kubernetes object of a statically known kind.
pub trait Object:
    ::kube::Resource<DynamicType = ()> + Clone + Debug + Serialize + DeserializeOwned + 'static
{
}

impl<K> Object for K where
    K: ::kube::Resource<DynamicType = ()> + Clone + Debug + Serialize + DeserializeOwned + 'static
{
}
