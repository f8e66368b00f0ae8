//! The contract, as wit-bindgen reads it.

wit_bindgen::generate!({ path: "../../../../../wit", world: "fence-method", generate_all });
