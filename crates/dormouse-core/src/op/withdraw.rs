//! withdraw: answer a waiting reserve or lock now, with nothing.
