//! A decoder of replies.

/// A reply.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    Status(String),
    Error(String),
    Number(i64),
    Text(Vec<u8>),
    List(Vec<Value>),
    Map(Vec<(Value, Value)>),
    Truth(bool),
    Null,
}

/// A simple string.
pub(crate) fn status(word: &str) -> Value {
    Value::Status(word.to_owned())
}

/// A string.
pub(crate) fn text(value: &str) -> Value {
    Value::Text(value.as_bytes().to_vec())
}

/// A list.
pub(crate) fn list(values: &[Value]) -> Value {
    Value::List(values.to_vec())
}

impl Value {
    /// Decodes the value at the start of some bytes; returns it and its length.
    pub(crate) fn read(bytes: &[u8]) -> Option<(Value, usize)> {
        let end = bytes.windows(2).position(|pair| pair == b"\r\n")?;
        let line = std::str::from_utf8(&bytes[1..end]).unwrap();
        let begin = end + 2;
        let number = || line.parse::<i64>().unwrap();
        let value = match bytes[0] {
            b'+' => Value::Status(line.to_owned()),
            b'-' => Value::Error(line.to_owned()),
            b':' => Value::Number(number()),
            b'#' => Value::Truth(line == "t"),
            b'_' => Value::Null,
            b'$' if number() < 0 => Value::Null,
            b'$' => {
                let end = begin + number() as usize;
                let value = bytes.get(begin..end)?.to_vec();
                assert_eq!(bytes.get(end..end + 2)?, b"\r\n");
                return Some((Value::Text(value), end + 2));
            }
            b'*' => {
                let (values, end) = Value::read_all(bytes, begin, number())?;
                return Some((Value::List(values), end));
            }
            b'%' => {
                let (values, end) = Value::read_all(bytes, begin, 2 * number())?;
                let pairs = values.chunks(2).map(|pair| (pair[0].clone(), pair[1].clone()));
                return Some((Value::Map(pairs.collect()), end));
            }
            other => panic!("{:?} begins no value", char::from(other)),
        };
        Some((value, begin))
    }

    fn read_all(bytes: &[u8], mut at: usize, count: i64) -> Option<(Vec<Value>, usize)> {
        let mut values = Vec::new();
        for _ in 0..count {
            let (value, length) = Value::read(bytes.get(at..)?)?;
            values.push(value);
            at += length;
        }
        Some((values, at))
    }

    /// The items of a list.
    #[track_caller]
    pub(crate) fn items(&self) -> &[Value] {
        match self {
            Value::List(values) => values,
            other => panic!("no list: {other:?}"),
        }
    }

    /// The text of a string or status.
    #[track_caller]
    pub(crate) fn str(&self) -> &str {
        match self {
            Value::Text(text) => std::str::from_utf8(text).unwrap(),
            Value::Status(word) => word,
            other => panic!("no text: {other:?}"),
        }
    }

    #[track_caller]
    pub(crate) fn number(&self) -> i64 {
        match self {
            Value::Number(number) => *number,
            other => panic!("no number: {other:?}"),
        }
    }

    /// The text of an error that has this code.
    #[track_caller]
    pub(crate) fn error(&self, code: &str) -> &str {
        match self {
            Value::Error(text) => match text.split_once(' ') {
                Some((word, text)) if word == code => text,
                _ => panic!("not {code}: {text}"),
            },
            other => panic!("no error: {other:?}"),
        }
    }

    /// The field of a map, or of a list of names and values.
    #[track_caller]
    pub(crate) fn field(&self, name: &str) -> &Value {
        let found = match self {
            Value::Map(pairs) => {
                pairs.iter().find(|(key, _)| *key == text(name)).map(|(_, value)| value)
            }
            Value::List(values) => {
                values.chunks(2).find(|pair| pair[0] == text(name)).map(|pair| &pair[1])
            }
            other => panic!("no map: {other:?}"),
        };
        found.unwrap_or_else(|| panic!("no field {name}: {self:?}"))
    }
}
